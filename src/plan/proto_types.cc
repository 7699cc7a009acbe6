#include "plan/proto_types.h"

#include <spark/connect/expressions.pb.h>
#include <spark/connect/types.pb.h>

#include <cmath>

#include "types/metadata_order.h"

// Clients of Spark 4.0 still fill the fields that later protocols call deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fleuve::plan {
namespace {

Error UnsupportedTime() {
  return Error(ErrorKind::kUnsupported, "UNSUPPORTED_TIME_TYPE", "The data type TIME is not supported.");
}

namespace sc = spark::connect;
using types::DataType;
using types::TypeKind;
using types::Value;
using Literal = sc::Expression_Literal;

struct TypedValue {
  Value value;
  DataType type;
};

Result<TypedValue> ReadLiteral(const Literal& proto, const DataType* expected);

Result<TypedValue> ReadElements(const google::protobuf::RepeatedPtrField<Literal>& elements, const DataType* element) {
  Value::List list;
  list.reserve(static_cast<std::size_t>(elements.size()));
  DataType type = element != nullptr ? *element : DataType();
  for (const Literal& item : elements) {
    FLEUVE_ASSIGN(TypedValue value, ReadLiteral(item, element));
    if (element == nullptr && type.Is(TypeKind::kVoid)) {
      type = value.type;
    }
    list.push_back(std::move(value.value));
  }
  return TypedValue{Value(std::move(list)), type};
}

template <typename Values, typename Convert>
TypedValue ReadPlain(const Values& values, const DataType& element, Convert convert) {
  Value::List list;
  list.reserve(static_cast<std::size_t>(values.size()));
  for (const auto& value : values) {
    list.push_back(convert(value));
  }
  return TypedValue{Value(std::move(list)), DataType::Array(element, false)};
}

Result<TypedValue> ReadSpecialized(const Literal::SpecializedArray& proto) {
  const auto integer = [](std::int64_t v) { return Value(v); };
  const auto real = [](double v) { return Value(v); };
  switch (proto.value_type_case()) {
    case Literal::SpecializedArray::kBools:
      return ReadPlain(proto.bools().values(), DataType::Boolean(), [](bool v) { return Value(v); });
    case Literal::SpecializedArray::kInts:
      return ReadPlain(proto.ints().values(), DataType::Int(), integer);
    case Literal::SpecializedArray::kLongs:
      return ReadPlain(proto.longs().values(), DataType::Long(), integer);
    case Literal::SpecializedArray::kFloats:
      return ReadPlain(proto.floats().values(), DataType::Float(), real);
    case Literal::SpecializedArray::kDoubles:
      return ReadPlain(proto.doubles().values(), DataType::Double(), real);
    case Literal::SpecializedArray::kStrings:
      return ReadPlain(proto.strings().values(), DataType::String(), [](const std::string& v) { return Value(v); });
    default:
      return Error::Unsupported("a specialized array literal of this kind");
  }
}

Result<TypedValue> ReadDecimal(const Literal::Decimal& proto) {
  FLEUVE_ASSIGN(auto parsed, types::DecimalFromString(proto.value()));
  auto [unscaled, scale] = parsed;
  int precision = 1;
  for (types::Int128 rest = unscaled < 0 ? -unscaled : unscaled; rest >= 10; rest /= 10) {
    ++precision;
  }
  precision = std::max(precision, scale);
  // The declared type only widens what the digits need: clients send decimal(10,0) for every decimal.
  const int wanted_scale = std::max(proto.has_scale() ? proto.scale() : scale, scale);
  while (scale < wanted_scale) {
    if (__builtin_mul_overflow(unscaled, types::Int128{10}, &unscaled)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_SQL_ARG", "The decimal literal does not fit its scale.");
    }
    ++scale;
    ++precision;
  }
  return TypedValue{
      Value(unscaled),
      DataType::Decimal(std::max({precision, proto.has_precision() ? proto.precision() : 1, scale, 1}), scale)};
}

Result<TypedValue> ReadLiteral(const Literal& proto, const DataType* expected) {
  std::optional<DataType> declared;
  if (proto.has_data_type()) {
    FLEUVE_ASSIGN(declared, TypeFromProto(proto.data_type()));
    expected = &*declared;
  }
  switch (proto.literal_type_case()) {
    case Literal::kNull: {
      if (expected != nullptr) {
        return TypedValue{Value(), *expected};
      }
      FLEUVE_ASSIGN(DataType type, TypeFromProto(proto.null()));
      return TypedValue{Value(), std::move(type)};
    }
    case Literal::kBinary:
      return TypedValue{Value(proto.binary()), DataType::Binary()};
    case Literal::kBoolean:
      return TypedValue{Value(proto.boolean()), DataType::Boolean()};
    case Literal::kByte:
      return TypedValue{Value(proto.byte()), DataType::Byte()};
    case Literal::kShort:
      return TypedValue{Value(proto.short_()), DataType::Short()};
    case Literal::kInteger:
      return TypedValue{Value(proto.integer()), DataType::Int()};
    case Literal::kLong:
      return TypedValue{Value(static_cast<std::int64_t>(proto.long_())), DataType::Long()};
    case Literal::kFloat:
      return TypedValue{Value(static_cast<double>(proto.float_())), DataType::Float()};
    case Literal::kDouble:
      return TypedValue{Value(proto.double_()), DataType::Double()};
    case Literal::kDecimal:
      return ReadDecimal(proto.decimal());
    case Literal::kString:
      return TypedValue{Value(proto.string()), DataType::String()};
    case Literal::kDate:
      return TypedValue{Value(proto.date()), DataType::Date()};
    case Literal::kTimestamp:
      return TypedValue{Value(static_cast<std::int64_t>(proto.timestamp())), DataType::Timestamp()};
    case Literal::kTimestampNtz:
      return TypedValue{Value(static_cast<std::int64_t>(proto.timestamp_ntz())), DataType::TimestampNtz()};
    case Literal::kCalendarInterval: {
      const auto& interval = proto.calendar_interval();
      return TypedValue{Value(types::CalendarInterval{interval.months(), interval.days(), interval.microseconds()}),
                        DataType::Of(TypeKind::kCalendarInterval)};
    }
    case Literal::kYearMonthInterval:
      return TypedValue{Value(proto.year_month_interval()),
                        expected != nullptr && expected->Is(TypeKind::kYearMonthInterval)
                            ? *expected
                            : DataType::YearMonthInterval()};
    case Literal::kDayTimeInterval:
      return TypedValue{
          Value(static_cast<std::int64_t>(proto.day_time_interval())),
          expected != nullptr && expected->Is(TypeKind::kDayTimeInterval) ? *expected : DataType::DayTimeInterval()};
    case Literal::kArray: {
      std::optional<DataType> element;
      if (expected != nullptr && expected->Is(TypeKind::kArray)) {
        element = expected->element();
      } else if (proto.array().has_element_type()) {
        FLEUVE_ASSIGN(element, TypeFromProto(proto.array().element_type()));
      }
      FLEUVE_ASSIGN(TypedValue list, ReadElements(proto.array().elements(), element ? &*element : nullptr));
      bool contains_null = false;
      for (const Value& item : list.value.list()) {
        contains_null = contains_null || item.is_null();
      }
      DataType type =
          expected != nullptr && expected->Is(TypeKind::kArray) ? *expected : DataType::Array(list.type, contains_null);
      return TypedValue{std::move(list.value), std::move(type)};
    }
    case Literal::kMap: {
      std::optional<DataType> key;
      std::optional<DataType> value;
      if (expected != nullptr && expected->Is(TypeKind::kMap)) {
        key = expected->key();
        value = expected->value();
      } else {
        if (proto.map().has_key_type()) {
          FLEUVE_ASSIGN(key, TypeFromProto(proto.map().key_type()));
        }
        if (proto.map().has_value_type()) {
          FLEUVE_ASSIGN(value, TypeFromProto(proto.map().value_type()));
        }
      }
      FLEUVE_ASSIGN(TypedValue keys, ReadElements(proto.map().keys(), key ? &*key : nullptr));
      FLEUVE_ASSIGN(TypedValue values, ReadElements(proto.map().values(), value ? &*value : nullptr));
      if (keys.value.list().size() != values.value.list().size()) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_SQL_ARG",
                     "The map literal has another number of keys than of values.");
      }
      Value::List entries;
      bool contains_null = false;
      for (std::size_t i = 0; i < keys.value.list().size(); ++i) {
        contains_null = contains_null || values.value.list()[i].is_null();
        entries.push_back(Value(Value::List{keys.value.list()[i], values.value.list()[i]}));
      }
      DataType type = expected != nullptr && expected->Is(TypeKind::kMap)
                          ? *expected
                          : DataType::Map(keys.type, values.type, contains_null);
      return TypedValue{Value(std::move(entries)), std::move(type)};
    }
    case Literal::kStruct: {
      std::optional<DataType> type;
      if (expected != nullptr && expected->Is(TypeKind::kStruct)) {
        type = *expected;
      } else if (proto.struct_().has_struct_type()) {
        FLEUVE_ASSIGN(type, TypeFromProto(proto.struct_().struct_type()));
      }
      if (!type || type->fields().size() != static_cast<std::size_t>(proto.struct_().elements_size())) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_SQL_ARG",
                     "The struct literal has another number of values than its type has fields.");
      }
      Value::List list;
      for (int i = 0; i < proto.struct_().elements_size(); ++i) {
        const types::StructField& field = type->fields()[static_cast<std::size_t>(i)];
        FLEUVE_ASSIGN(TypedValue item, ReadLiteral(proto.struct_().elements(i), &field.type));
        list.push_back(std::move(item.value));
      }
      return TypedValue{Value(std::move(list)), *type};
    }
    case Literal::kSpecializedArray:
      return ReadSpecialized(proto.specialized_array());
    case Literal::kTime:
      return UnsupportedTime();
    case Literal::LITERAL_TYPE_NOT_SET:
      break;
  }
  return Error::Unsupported("a literal of this kind");
}

}  // namespace

Result<DataType> TypeFromProto(const sc::DataType& proto) {
  switch (proto.kind_case()) {
    case sc::DataType::kNull:
      return DataType::Void();
    case sc::DataType::kBinary:
      return DataType::Binary();
    case sc::DataType::kBoolean:
      return DataType::Boolean();
    case sc::DataType::kByte:
      return DataType::Byte();
    case sc::DataType::kShort:
      return DataType::Short();
    case sc::DataType::kInteger:
      return DataType::Int();
    case sc::DataType::kLong:
      return DataType::Long();
    case sc::DataType::kFloat:
      return DataType::Float();
    case sc::DataType::kDouble:
      return DataType::Double();
    case sc::DataType::kDecimal: {
      const int precision = proto.decimal().has_precision() ? proto.decimal().precision() : 10;
      const int scale = proto.decimal().has_scale() ? proto.decimal().scale() : 0;
      if (precision < 1 || precision > 38 || scale < 0 || scale > precision) {
        return Error(ErrorKind::kInvalidArgument, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
                     "Decimal precision " + std::to_string(precision) + " exceeds max precision 38.");
      }
      return DataType::Decimal(precision, scale);
    }
    case sc::DataType::kString:
      return proto.string().collation().empty() ? DataType::String() : DataType::String(proto.string().collation());
    case sc::DataType::kChar:
      return DataType::Char(proto.char_().length());
    case sc::DataType::kVarChar:
      return DataType::Varchar(proto.var_char().length());
    case sc::DataType::kDate:
      return DataType::Date();
    case sc::DataType::kTimestamp:
      return DataType::Timestamp();
    case sc::DataType::kTimestampNtz:
      return DataType::TimestampNtz();
    case sc::DataType::kCalendarInterval:
      return DataType::Of(TypeKind::kCalendarInterval);
    case sc::DataType::kYearMonthInterval: {
      const auto& interval = proto.year_month_interval();
      const int start = interval.has_start_field() ? interval.start_field() : 0;
      return DataType::YearMonthInterval(start, interval.has_end_field()     ? interval.end_field()
                                                : interval.has_start_field() ? start
                                                                             : 1);
    }
    case sc::DataType::kDayTimeInterval: {
      const auto& interval = proto.day_time_interval();
      const int start = interval.has_start_field() ? interval.start_field() : 0;
      return DataType::DayTimeInterval(start, interval.has_end_field()     ? interval.end_field()
                                              : interval.has_start_field() ? start
                                                                           : 3);
    }
    case sc::DataType::kArray: {
      FLEUVE_ASSIGN(DataType element, TypeFromProto(proto.array().element_type()));
      return DataType::Array(std::move(element), proto.array().contains_null());
    }
    case sc::DataType::kStruct: {
      std::vector<types::StructField> fields;
      for (const auto& field : proto.struct_().fields()) {
        types::StructField made;
        made.name = field.name();
        FLEUVE_ASSIGN(made.type, TypeFromProto(field.data_type()));
        made.nullable = field.nullable();
        if (field.has_metadata() && !field.metadata().empty()) {
          FLEUVE_ASSIGN(made.metadata, Json::Parse(field.metadata()));
          if (made.metadata.fields().empty()) {
            made.metadata = Json();
          }
        }
        fields.push_back(std::move(made));
      }
      return DataType::Struct(std::move(fields));
    }
    case sc::DataType::kMap: {
      FLEUVE_ASSIGN(DataType key, TypeFromProto(proto.map().key_type()));
      FLEUVE_ASSIGN(DataType value, TypeFromProto(proto.map().value_type()));
      return DataType::Map(std::move(key), std::move(value), proto.map().value_contains_null());
    }
    case sc::DataType::kVariant:
      return DataType::Variant();
    case sc::DataType::kUnparsed:
      return DataType::FromDdl(proto.unparsed().data_type_string());
    case sc::DataType::kUdt:
      return Error::Unsupported("user-defined types");
    case sc::DataType::kTime:
      return UnsupportedTime();
    default:
      return Error::Unsupported("a data type of kind " + std::to_string(static_cast<int>(proto.kind_case())));
  }
}

void TypeToProto(const DataType& type, sc::DataType* proto) {
  switch (type.kind()) {
    case TypeKind::kVoid:
      proto->mutable_null();
      return;
    case TypeKind::kBoolean:
      proto->mutable_boolean();
      return;
    case TypeKind::kByte:
      proto->mutable_byte();
      return;
    case TypeKind::kShort:
      proto->mutable_short_();
      return;
    case TypeKind::kInt:
      proto->mutable_integer();
      return;
    case TypeKind::kLong:
      proto->mutable_long_();
      return;
    case TypeKind::kFloat:
      proto->mutable_float_();
      return;
    case TypeKind::kDouble:
      proto->mutable_double_();
      return;
    case TypeKind::kDecimal:
      proto->mutable_decimal()->set_precision(type.precision());
      proto->mutable_decimal()->set_scale(type.scale());
      return;
    case TypeKind::kString:
      proto->mutable_string()->set_collation(type.collation().empty() ? "UTF8_BINARY" : type.collation());
      return;
    case TypeKind::kChar:
      proto->mutable_char_()->set_length(type.length());
      return;
    case TypeKind::kVarchar:
      proto->mutable_var_char()->set_length(type.length());
      return;
    case TypeKind::kBinary:
      proto->mutable_binary();
      return;
    case TypeKind::kDate:
      proto->mutable_date();
      return;
    case TypeKind::kTime:
      proto->mutable_time();
      return;
    case TypeKind::kTimestamp:
      proto->mutable_timestamp();
      return;
    case TypeKind::kTimestampNtz:
      proto->mutable_timestamp_ntz();
      return;
    case TypeKind::kDayTimeInterval:
      proto->mutable_day_time_interval()->set_start_field(type.precision());
      proto->mutable_day_time_interval()->set_end_field(type.scale());
      return;
    case TypeKind::kYearMonthInterval:
      proto->mutable_year_month_interval()->set_start_field(type.precision());
      proto->mutable_year_month_interval()->set_end_field(type.scale());
      return;
    case TypeKind::kCalendarInterval:
      proto->mutable_calendar_interval();
      return;
    case TypeKind::kArray:
      TypeToProto(type.element(), proto->mutable_array()->mutable_element_type());
      proto->mutable_array()->set_contains_null(type.contains_null());
      return;
    case TypeKind::kMap:
      TypeToProto(type.key(), proto->mutable_map()->mutable_key_type());
      TypeToProto(type.value(), proto->mutable_map()->mutable_value_type());
      proto->mutable_map()->set_value_contains_null(type.contains_null());
      return;
    case TypeKind::kStruct:
      proto->mutable_struct_();
      for (const types::StructField& field : type.fields()) {
        auto* made = proto->mutable_struct_()->add_fields();
        made->set_name(field.name);
        TypeToProto(field.type, made->mutable_data_type());
        made->set_nullable(field.nullable);
        if (!field.metadata.fields().empty()) {
          made->set_metadata(types::InMetadataOrder(field.metadata).Dump());
        }
      }
      return;
    case TypeKind::kVariant:
      proto->mutable_variant();
      return;
  }
}

Result<ExprPtr> LiteralFromProto(const Literal& proto) {
  FLEUVE_ASSIGN(TypedValue typed, ReadLiteral(proto, nullptr));
  return MakeLiteral(std::move(typed.value), std::move(typed.type));
}

Result<void> LiteralToProto(const Value& value, const DataType& type, Literal* proto) {
  if (value.is_null()) {
    TypeToProto(type, proto->mutable_null());
    return {};
  }
  switch (type.kind()) {
    case TypeKind::kVoid:
      proto->mutable_null()->mutable_null();
      return {};
    case TypeKind::kBoolean:
      proto->set_boolean(value.boolean());
      return {};
    case TypeKind::kByte:
      proto->set_byte(static_cast<std::int32_t>(value.integer()));
      return {};
    case TypeKind::kShort:
      proto->set_short_(static_cast<std::int32_t>(value.integer()));
      return {};
    case TypeKind::kInt:
      proto->set_integer(static_cast<std::int32_t>(value.integer()));
      return {};
    case TypeKind::kLong:
      proto->set_long_(value.integer());
      return {};
    case TypeKind::kFloat:
      proto->set_float_(static_cast<float>(value.real()));
      return {};
    case TypeKind::kDouble:
      proto->set_double_(value.real());
      return {};
    case TypeKind::kDecimal:
      proto->mutable_decimal()->set_value(types::DecimalToString(value.decimal(), type.scale()));
      proto->mutable_decimal()->set_precision(type.precision());
      proto->mutable_decimal()->set_scale(type.scale());
      return {};
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      proto->set_string(value.text());
      return {};
    case TypeKind::kBinary:
      proto->set_binary(value.text());
      return {};
    case TypeKind::kDate:
      proto->set_date(static_cast<std::int32_t>(value.integer()));
      return {};
    case TypeKind::kTimestamp:
      proto->set_timestamp(value.integer());
      return {};
    case TypeKind::kTimestampNtz:
      proto->set_timestamp_ntz(value.integer());
      return {};
    case TypeKind::kDayTimeInterval:
      proto->set_day_time_interval(value.integer());
      return {};
    case TypeKind::kYearMonthInterval:
      proto->set_year_month_interval(static_cast<std::int32_t>(value.integer()));
      return {};
    case TypeKind::kCalendarInterval:
      proto->mutable_calendar_interval()->set_months(value.interval().months);
      proto->mutable_calendar_interval()->set_days(value.interval().days);
      proto->mutable_calendar_interval()->set_microseconds(value.interval().micros);
      return {};
    case TypeKind::kArray:
      TypeToProto(type.element(), proto->mutable_array()->mutable_element_type());
      for (const Value& item : value.list()) {
        FLEUVE_TRY(LiteralToProto(item, type.element(), proto->mutable_array()->add_elements()));
      }
      return {};
    case TypeKind::kMap:
      TypeToProto(type.key(), proto->mutable_map()->mutable_key_type());
      TypeToProto(type.value(), proto->mutable_map()->mutable_value_type());
      for (const Value& entry : value.list()) {
        FLEUVE_TRY(LiteralToProto(entry.list().at(0), type.key(), proto->mutable_map()->add_keys()));
        FLEUVE_TRY(LiteralToProto(entry.list().at(1), type.value(), proto->mutable_map()->add_values()));
      }
      return {};
    case TypeKind::kStruct:
      TypeToProto(type, proto->mutable_struct_()->mutable_struct_type());
      for (std::size_t i = 0; i < value.list().size(); ++i) {
        FLEUVE_TRY(LiteralToProto(value.list()[i], type.fields().at(i).type, proto->mutable_struct_()->add_elements()));
      }
      return {};
    case TypeKind::kTime:
    case TypeKind::kVariant:
      break;
  }
  return Error::Unsupported("a literal of type " + type.SimpleString() + " in a response");
}

}  // namespace fleuve::plan
