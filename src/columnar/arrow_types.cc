#include <arrow/c/bridge.h>

#include <map>

#include "columnar/arrow_types_internal.h"

namespace fleuve::columnar {

using types::DataType;
using types::StructField;
using types::TypeKind;

Error FromArrowStatus(const arrow::Status& status, bool corrupt) {
  if (status.IsOutOfMemory()) {
    return Error(ErrorKind::kResourceExhausted, "INTERNAL_ERROR", "Out of memory for Arrow data: " + status.message());
  }
  if (corrupt) {
    return Error(ErrorKind::kCorrupt, "INTERNAL_ERROR", "Not a valid Arrow stream: " + status.message());
  }
  return Error::Internal("Arrow: " + status.ToString());
}

Result<std::shared_ptr<arrow::DataType>> ToArrowType(const DataType& type, const ArrowOptions& options) {
  switch (type.kind()) {
    case TypeKind::kVoid:
      return arrow::null();
    case TypeKind::kBoolean:
      return arrow::boolean();
    case TypeKind::kByte:
      return arrow::int8();
    case TypeKind::kShort:
      return arrow::int16();
    case TypeKind::kInt:
      return arrow::int32();
    case TypeKind::kLong:
      return arrow::int64();
    case TypeKind::kFloat:
      return arrow::float32();
    case TypeKind::kDouble:
      return arrow::float64();
    case TypeKind::kDecimal:
      return arrow::decimal128(type.precision(), type.scale());
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return arrow::utf8();
    case TypeKind::kBinary:
      return arrow::binary();
    case TypeKind::kDate:
      return arrow::date32();
    case TypeKind::kTimestamp:
      return arrow::timestamp(arrow::TimeUnit::MICRO, options.time_zone);
    case TypeKind::kTimestampNtz:
      return arrow::timestamp(arrow::TimeUnit::MICRO);
    case TypeKind::kDayTimeInterval:
      return arrow::duration(arrow::TimeUnit::MICRO);
    case TypeKind::kYearMonthInterval:
      return arrow::month_interval();
    case TypeKind::kCalendarInterval:
      return arrow::month_day_nano_interval();
    case TypeKind::kArray: {
      FLEUVE_ASSIGN(auto element, ToArrowType(type.element(), options));
      return arrow::list(arrow::field("element", element, type.contains_null()));
    }
    case TypeKind::kMap: {
      FLEUVE_ASSIGN(auto key, ToArrowType(type.key(), options));
      FLEUVE_ASSIGN(auto value, ToArrowType(type.value(), options));
      return std::make_shared<arrow::MapType>(arrow::field("key", key, false),
                                              arrow::field("value", value, type.contains_null()));
    }
    case TypeKind::kStruct: {
      // Clients refuse a name that stands twice: each gets its number, as Spark does.
      std::map<std::string, std::pair<int, int>> names;
      for (const StructField& field : type.fields()) {
        ++names[field.name].first;
      }
      arrow::FieldVector fields;
      for (const StructField& field : type.fields()) {
        FLEUVE_ASSIGN(auto arrow_field, ToArrowField(field, options));
        auto& [count, next] = names[field.name];
        fields.push_back(count == 1 ? arrow_field : arrow_field->WithName(field.name + "_" + std::to_string(next++)));
      }
      return arrow::struct_(std::move(fields));
    }
    case TypeKind::kVariant:
      return arrow::struct_(
          {arrow::field("value", arrow::binary(), false),
           arrow::field("metadata", arrow::binary(), false, arrow::key_value_metadata({"variant"}, {"true"}))});
    case TypeKind::kTime:
      break;
  }
  return Error::Unsupported("columns of type " + type.Sql());
}

Result<std::shared_ptr<arrow::Field>> ToArrowField(const StructField& field, const ArrowOptions& options) {
  FLEUVE_ASSIGN(auto type, ToArrowType(field.type, options));
  return arrow::field(field.name, std::move(type), field.nullable);
}

Result<std::shared_ptr<arrow::Schema>> ToArrowCppSchema(const types::Schema& schema, const ArrowOptions& options) {
  arrow::FieldVector fields;
  for (const StructField& field : schema.fields()) {
    FLEUVE_ASSIGN(auto arrow_field, ToArrowField(field, options));
    fields.push_back(std::move(arrow_field));
  }
  return arrow::schema(std::move(fields));
}

namespace {

bool IsVariantStruct(const arrow::DataType& type) {
  if (type.num_fields() != 2) {
    return false;
  }
  const auto& metadata = type.field(1);
  return type.field(0)->name() == "value" && metadata->name() == "metadata" && metadata->metadata() != nullptr &&
         metadata->metadata()->Contains("variant");
}

Error UnsupportedArrowType(const arrow::DataType& type) {
  return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_ARROWTYPE", "Unsupported arrow type " + type.ToString() + ".")
      .With("typeName", type.ToString());
}

}  // namespace

Result<DataType> FromArrowType(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::NA:
      return DataType::Void();
    case arrow::Type::BOOL:
      return DataType::Boolean();
    case arrow::Type::INT8:
      return DataType::Byte();
    case arrow::Type::INT16:
      return DataType::Short();
    case arrow::Type::INT32:
      return DataType::Int();
    case arrow::Type::INT64:
      return DataType::Long();
    case arrow::Type::FLOAT:
      return DataType::Float();
    case arrow::Type::DOUBLE:
      return DataType::Double();
    case arrow::Type::DECIMAL128: {
      const auto& decimal = static_cast<const arrow::Decimal128Type&>(type);
      return DataType::Decimal(decimal.precision(), decimal.scale());
    }
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return DataType::String();
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::FIXED_SIZE_BINARY:
      return DataType::Binary();
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
      return DataType::Date();
    case arrow::Type::TIMESTAMP:
      return static_cast<const arrow::TimestampType&>(type).timezone().empty() ? DataType::TimestampNtz()
                                                                               : DataType::Timestamp();
    case arrow::Type::DURATION:
      return DataType::DayTimeInterval();
    case arrow::Type::INTERVAL_MONTHS:
      return DataType::YearMonthInterval();
    case arrow::Type::INTERVAL_MONTH_DAY_NANO:
      return DataType::Of(TypeKind::kCalendarInterval);
    case arrow::Type::DICTIONARY:
      return FromArrowType(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST: {
      FLEUVE_ASSIGN(DataType element, FromArrowType(*type.field(0)->type()));
      return DataType::Array(std::move(element), type.field(0)->nullable());
    }
    case arrow::Type::MAP: {
      const auto& map = static_cast<const arrow::MapType&>(type);
      FLEUVE_ASSIGN(DataType key, FromArrowType(*map.key_type()));
      FLEUVE_ASSIGN(DataType value, FromArrowType(*map.item_type()));
      return DataType::Map(std::move(key), std::move(value), map.item_field()->nullable());
    }
    case arrow::Type::STRUCT: {
      if (IsVariantStruct(type)) {
        return DataType::Variant();
      }
      std::vector<StructField> fields;
      for (const auto& field : type.fields()) {
        FLEUVE_ASSIGN(DataType field_type, FromArrowType(*field->type()));
        fields.push_back(StructField{field->name(), std::move(field_type), field->nullable(), Json()});
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return UnsupportedArrowType(type);
  }
}

Result<types::Schema> FromArrowCppSchema(const arrow::Schema& schema) {
  std::vector<StructField> fields;
  for (const auto& field : schema.fields()) {
    FLEUVE_ASSIGN(DataType type, FromArrowType(*field->type()));
    fields.push_back(StructField{field->name(), std::move(type), field->nullable(), Json()});
  }
  return DataType::Struct(std::move(fields));
}

Result<void> ToArrowSchema(const types::Schema& schema, const ArrowOptions& options, ArrowSchema* out) {
  FLEUVE_ASSIGN(auto arrow_schema, ToArrowCppSchema(schema, options));
  FLEUVE_ARROW_TRY(arrow::ExportSchema(*arrow_schema, out));
  return {};
}

Result<types::Schema> FromArrowSchema(const ArrowSchema& schema) {
  // The import takes over what it is given: a shallow copy that releases nothing.
  ArrowSchema borrowed = schema;
  borrowed.release = [](ArrowSchema* self) { self->release = nullptr; };
  auto imported = arrow::ImportSchema(&borrowed);
  if (!imported.ok()) {
    return FromArrowStatus(imported.status());
  }
  return FromArrowCppSchema(**imported);
}

}  // namespace fleuve::columnar
