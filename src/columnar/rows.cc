#include <arrow/c/bridge.h>
#include <arrow/util/decimal.h>

#include "columnar/arrow_types_internal.h"

namespace fleuve::columnar {

using types::DataType;
using types::TypeKind;
using types::Value;

Result<std::shared_ptr<arrow::RecordBatch>> ImportBatch(const RecordBatch& batch,
                                                        const std::shared_ptr<arrow::Schema>& schema);
Result<RecordBatch> ExportBatch(const arrow::RecordBatch& batch, std::shared_ptr<const types::Schema> schema);

namespace {

arrow::Decimal128 ToArrowDecimal(types::Int128 value) {
  return arrow::Decimal128(static_cast<std::int64_t>(value >> 64), static_cast<std::uint64_t>(value));
}

types::Int128 FromArrowDecimal(const arrow::Decimal128& value) {
  return (static_cast<types::Int128>(value.high_bits()) << 64) | static_cast<types::Int128>(value.low_bits());
}

template <typename Builder, typename T>
arrow::Status AppendTo(arrow::ArrayBuilder* builder, T value) {
  return static_cast<Builder*>(builder)->Append(value);
}

Result<void> AppendValue(arrow::ArrayBuilder* builder, const DataType& type, const Value& value) {
  if (value.is_null()) {
    FLEUVE_ARROW_TRY(builder->AppendNull());
    return {};
  }
  switch (type.kind()) {
    case TypeKind::kVoid:
      FLEUVE_ARROW_TRY(builder->AppendNull());
      return {};
    case TypeKind::kBoolean:
      FLEUVE_ARROW_TRY(AppendTo<arrow::BooleanBuilder>(builder, value.boolean()));
      return {};
    case TypeKind::kByte:
      FLEUVE_ARROW_TRY(AppendTo<arrow::Int8Builder>(builder, static_cast<std::int8_t>(value.integer())));
      return {};
    case TypeKind::kShort:
      FLEUVE_ARROW_TRY(AppendTo<arrow::Int16Builder>(builder, static_cast<std::int16_t>(value.integer())));
      return {};
    case TypeKind::kInt:
      FLEUVE_ARROW_TRY(AppendTo<arrow::Int32Builder>(builder, static_cast<std::int32_t>(value.integer())));
      return {};
    case TypeKind::kLong:
      FLEUVE_ARROW_TRY(AppendTo<arrow::Int64Builder>(builder, value.integer()));
      return {};
    case TypeKind::kFloat:
      FLEUVE_ARROW_TRY(AppendTo<arrow::FloatBuilder>(builder, static_cast<float>(value.real())));
      return {};
    case TypeKind::kDouble:
      FLEUVE_ARROW_TRY(AppendTo<arrow::DoubleBuilder>(builder, value.real()));
      return {};
    case TypeKind::kDecimal:
      FLEUVE_ARROW_TRY(AppendTo<arrow::Decimal128Builder>(builder, ToArrowDecimal(value.decimal())));
      return {};
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      FLEUVE_ARROW_TRY(AppendTo<arrow::StringBuilder>(builder, std::string_view(value.text())));
      return {};
    case TypeKind::kBinary:
      FLEUVE_ARROW_TRY(AppendTo<arrow::BinaryBuilder>(builder, std::string_view(value.text())));
      return {};
    case TypeKind::kDate:
      FLEUVE_ARROW_TRY(AppendTo<arrow::Date32Builder>(builder, static_cast<std::int32_t>(value.integer())));
      return {};
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
      FLEUVE_ARROW_TRY(AppendTo<arrow::TimestampBuilder>(builder, value.integer()));
      return {};
    case TypeKind::kDayTimeInterval:
      FLEUVE_ARROW_TRY(AppendTo<arrow::DurationBuilder>(builder, value.integer()));
      return {};
    case TypeKind::kYearMonthInterval:
      FLEUVE_ARROW_TRY(AppendTo<arrow::MonthIntervalBuilder>(builder, static_cast<std::int32_t>(value.integer())));
      return {};
    case TypeKind::kCalendarInterval: {
      const types::CalendarInterval& interval = value.interval();
      arrow::MonthDayNanoIntervalType::MonthDayNanos parts{};
      parts.months = interval.months;
      parts.days = interval.days;
      if (__builtin_mul_overflow(interval.micros, std::int64_t{1000}, &parts.nanoseconds)) {
        return Error(ErrorKind::kInvalidArgument, "", "long overflow").Family(ErrorFamily::kArithmetic);
      }
      FLEUVE_ARROW_TRY(AppendTo<arrow::MonthDayNanoIntervalBuilder>(builder, parts));
      return {};
    }
    case TypeKind::kArray: {
      auto* list = static_cast<arrow::ListBuilder*>(builder);
      FLEUVE_ARROW_TRY(list->Append());
      for (const Value& element : value.list()) {
        FLEUVE_TRY(AppendValue(list->value_builder(), type.element(), element));
      }
      return {};
    }
    case TypeKind::kMap: {
      auto* map = static_cast<arrow::MapBuilder*>(builder);
      FLEUVE_ARROW_TRY(map->Append());
      for (const Value& entry : value.list()) {
        FLEUVE_TRY(AppendValue(map->key_builder(), type.key(), entry.list().at(0)));
        FLEUVE_TRY(AppendValue(map->item_builder(), type.value(), entry.list().at(1)));
      }
      return {};
    }
    case TypeKind::kStruct: {
      auto* structs = static_cast<arrow::StructBuilder*>(builder);
      FLEUVE_ARROW_TRY(structs->Append());
      if (value.list().size() != type.fields().size()) {
        return Error::Internal("a struct value of " + std::to_string(value.list().size()) + " fields meets a type of " +
                               std::to_string(type.fields().size()));
      }
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        FLEUVE_TRY(AppendValue(structs->field_builder(static_cast<int>(i)), type.fields()[i].type, value.list()[i]));
      }
      return {};
    }
    case TypeKind::kVariant: {
      auto* structs = static_cast<arrow::StructBuilder*>(builder);
      FLEUVE_ARROW_TRY(structs->Append());
      for (int i = 0; i < 2; ++i) {
        FLEUVE_ARROW_TRY(AppendTo<arrow::BinaryBuilder>(
            structs->field_builder(i), std::string_view(value.list().at(static_cast<std::size_t>(i)).text())));
      }
      return {};
    }
    case TypeKind::kTime:
      break;
  }
  return Error::Unsupported("values of type " + type.Sql());
}

template <typename ArrayType>
std::int64_t IntegerAt(const arrow::Array& array, std::int64_t row) {
  return static_cast<std::int64_t>(static_cast<const ArrayType&>(array).Value(row));
}

Value ValueAt(const arrow::Array& array, const DataType& type, std::int64_t row) {
  if (array.IsNull(row)) {
    return Value();
  }
  switch (type.kind()) {
    case TypeKind::kVoid:
    case TypeKind::kTime:
      return Value();
    case TypeKind::kBoolean:
      return Value(static_cast<const arrow::BooleanArray&>(array).Value(row));
    case TypeKind::kByte:
      return Value(IntegerAt<arrow::Int8Array>(array, row));
    case TypeKind::kShort:
      return Value(IntegerAt<arrow::Int16Array>(array, row));
    case TypeKind::kInt:
      return Value(IntegerAt<arrow::Int32Array>(array, row));
    case TypeKind::kLong:
      return Value(IntegerAt<arrow::Int64Array>(array, row));
    case TypeKind::kFloat:
      return Value(static_cast<double>(static_cast<const arrow::FloatArray&>(array).Value(row)));
    case TypeKind::kDouble:
      return Value(static_cast<const arrow::DoubleArray&>(array).Value(row));
    case TypeKind::kDecimal:
      return Value(
          FromArrowDecimal(arrow::Decimal128(static_cast<const arrow::Decimal128Array&>(array).GetValue(row))));
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      return Value(std::string(static_cast<const arrow::BinaryArray&>(array).GetView(row)));
    case TypeKind::kDate:
      return Value(IntegerAt<arrow::Date32Array>(array, row));
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
      return Value(IntegerAt<arrow::TimestampArray>(array, row));
    case TypeKind::kDayTimeInterval:
      return Value(IntegerAt<arrow::DurationArray>(array, row));
    case TypeKind::kYearMonthInterval:
      return Value(IntegerAt<arrow::MonthIntervalArray>(array, row));
    case TypeKind::kCalendarInterval: {
      const auto parts = static_cast<const arrow::MonthDayNanoIntervalArray&>(array).GetValue(row);
      return Value(types::CalendarInterval{parts.months, parts.days, parts.nanoseconds / 1000});
    }
    case TypeKind::kArray: {
      const auto& list = static_cast<const arrow::ListArray&>(array);
      Value::List elements;
      for (std::int64_t i = list.value_offset(row); i < list.value_offset(row + 1); ++i) {
        elements.push_back(ValueAt(*list.values(), type.element(), i));
      }
      return Value(std::move(elements));
    }
    case TypeKind::kMap: {
      const auto& map = static_cast<const arrow::MapArray&>(array);
      Value::List entries;
      for (std::int64_t i = map.value_offset(row); i < map.value_offset(row + 1); ++i) {
        entries.push_back(
            Value(Value::List{ValueAt(*map.keys(), type.key(), i), ValueAt(*map.items(), type.value(), i)}));
      }
      return Value(std::move(entries));
    }
    case TypeKind::kStruct: {
      const auto& structs = static_cast<const arrow::StructArray&>(array);
      Value::List fields;
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        fields.push_back(ValueAt(*structs.field(static_cast<int>(i)), type.fields()[i].type, row));
      }
      return Value(std::move(fields));
    }
    case TypeKind::kVariant: {
      const auto& structs = static_cast<const arrow::StructArray&>(array);
      return Value(Value::List{ValueAt(*structs.field(0), DataType::Binary(), row),
                               ValueAt(*structs.field(1), DataType::Binary(), row)});
    }
  }
  return Value();
}

}  // namespace

Result<RecordBatch> BatchFromRows(const types::Schema& schema, const std::vector<Value::List>& rows) {
  FLEUVE_ASSIGN(auto arrow_schema, ToArrowCppSchema(schema, ArrowOptions{}));
  arrow::ArrayVector columns;
  for (std::size_t c = 0; c < schema.fields().size(); ++c) {
    std::unique_ptr<arrow::ArrayBuilder> builder;
    FLEUVE_ARROW_TRY(
        arrow::MakeBuilder(arrow::default_memory_pool(), arrow_schema->field(static_cast<int>(c))->type(), &builder));
    FLEUVE_ARROW_TRY(builder->Reserve(static_cast<std::int64_t>(rows.size())));
    for (const Value::List& row : rows) {
      if (row.size() != schema.fields().size()) {
        return Error::Internal("a row of " + std::to_string(row.size()) + " values meets a schema of " +
                               std::to_string(schema.fields().size()) + " columns");
      }
      FLEUVE_TRY(AppendValue(builder.get(), schema.fields()[c].type, row[c]));
    }
    auto column = builder->Finish();
    if (!column.ok()) {
      return FromArrowStatus(column.status());
    }
    columns.push_back(*column);
  }
  auto batch = arrow::RecordBatch::Make(arrow_schema, static_cast<std::int64_t>(rows.size()), std::move(columns));
  return ExportBatch(*batch, std::make_shared<const types::Schema>(schema));
}

Result<std::vector<Value::List>> RowsFromBatch(const RecordBatch& batch) {
  FLEUVE_ASSIGN(auto arrow_schema, ToArrowCppSchema(*batch.schema, ArrowOptions{}));
  FLEUVE_ASSIGN(auto arrow_batch, ImportBatch(batch, arrow_schema));
  std::vector<Value::List> rows(static_cast<std::size_t>(batch.row_count()));
  const auto& fields = batch.schema->fields();
  for (std::size_t c = 0; c < fields.size(); ++c) {
    const auto column = arrow_batch->column(static_cast<int>(c));
    for (std::size_t r = 0; r < rows.size(); ++r) {
      rows[r].push_back(ValueAt(*column, fields[c].type, static_cast<std::int64_t>(r)));
    }
  }
  return rows;
}

}  // namespace fleuve::columnar
