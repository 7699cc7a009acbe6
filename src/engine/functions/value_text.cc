#include "base/json.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/value_text_internal.h"
#include "plan/expr.h"

namespace fleuve::engine {

using types::DataType;
using types::TypeKind;

namespace {

template <typename T>
auto At(const duckdb::RecursiveUnifiedVectorFormat& format, duckdb::idx_t index) {
  return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
}

Int128 DecimalAt(const duckdb::RecursiveUnifiedVectorFormat& format, duckdb::idx_t index, int precision) {
  return WithDecimalCarrier(precision, [&](auto zero) -> Int128 { return At<decltype(zero)>(format, index); });
}

}  // namespace

std::string IntervalText(std::int64_t value, const DataType& type) {
  return plan::LiteralSql(types::Value(value), type, "UTC");
}

std::string CalendarIntervalText(std::int32_t months, std::int32_t days, std::int64_t micros) {
  std::string text = plan::LiteralSql(types::Value(types::CalendarInterval{months, days, micros}),
                                      DataType::Of(TypeKind::kCalendarInterval), "UTC");
  // INTERVAL '...'
  return text.substr(10, text.size() - 11);
}

void ValueText::Bind(duckdb::Vector& vector, duckdb::idx_t count) {
  format_ = duckdb::RecursiveUnifiedVectorFormat();
  duckdb::Vector::RecursiveToUnifiedFormat(vector, count, format_);
}

bool ValueText::IsNull(duckdb::idx_t row) const {
  return !format_.unified.validity.RowIsValid(format_.unified.sel->get_index(row));
}

void ValueText::Append(duckdb::idx_t row, std::string& out) const {
  AppendValue(type_, format_, format_.unified.sel->get_index(row), out);
}

void ValueText::AppendOrNull(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format,
                             duckdb::idx_t row, std::string& out) const {
  duckdb::idx_t index = format.unified.sel->get_index(row);
  if (!format.unified.validity.RowIsValid(index)) {
    out += "null";
    return;
  }
  AppendValue(type, format, index, out);
}

void ValueText::AppendValue(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format,
                            duckdb::idx_t index, std::string& out) const {
  switch (type.kind()) {
    case TypeKind::kVoid:
      out += "null";
      return;
    case TypeKind::kBoolean:
      out += At<bool>(format, index) ? "true" : "false";
      return;
    case TypeKind::kByte:
      out += std::to_string(At<std::int8_t>(format, index));
      return;
    case TypeKind::kShort:
      out += std::to_string(At<std::int16_t>(format, index));
      return;
    case TypeKind::kInt:
      out += std::to_string(At<std::int32_t>(format, index));
      return;
    case TypeKind::kLong:
      out += std::to_string(At<std::int64_t>(format, index));
      return;
    case TypeKind::kFloat:
      out += JavaFloatToString(At<float>(format, index));
      return;
    case TypeKind::kDouble:
      out += JavaDoubleToString(At<double>(format, index));
      return;
    case TypeKind::kDecimal:
      out += types::DecimalToString(DecimalAt(format, index, type.precision()), type.scale());
      return;
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      out += At<Str>(format, index);
      return;
    case TypeKind::kDate:
      out += types::DateToString(At<std::int32_t>(format, index));
      return;
    case TypeKind::kTimestamp:
      out += types::TimestampNtzToString(zone_->UtcToLocal(At<std::int64_t>(format, index)));
      return;
    case TypeKind::kTimestampNtz:
      out += types::TimestampNtzToString(At<std::int64_t>(format, index));
      return;
    case TypeKind::kDayTimeInterval:
      out += IntervalText(At<std::int64_t>(format, index), type);
      return;
    case TypeKind::kYearMonthInterval:
      out += IntervalText(At<std::int32_t>(format, index), type);
      return;
    case TypeKind::kCalendarInterval: {
      auto part = [&](std::size_t i) -> duckdb::idx_t { return format.children[i].unified.sel->get_index(index); };
      out += CalendarIntervalText(At<std::int32_t>(format.children[0], part(0)),
                                  At<std::int32_t>(format.children[1], part(1)),
                                  At<std::int64_t>(format.children[2], part(2)));
      return;
    }
    case TypeKind::kArray: {
      auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
      out += '[';
      for (duckdb::idx_t i = 0; i < entry.length; ++i) {
        if (i > 0) {
          out += ", ";
        }
        AppendOrNull(type.element(), format.children[0], entry.offset + i, out);
      }
      out += ']';
      return;
    }
    case TypeKind::kMap: {
      auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
      const auto& pair = format.children[0];
      out += '{';
      for (duckdb::idx_t i = 0; i < entry.length; ++i) {
        if (i > 0) {
          out += ", ";
        }
        duckdb::idx_t at = pair.unified.sel->get_index(entry.offset + i);
        AppendOrNull(type.key(), pair.children[0], at, out);
        out += " -> ";
        AppendOrNull(type.value(), pair.children[1], at, out);
      }
      out += '}';
      return;
    }
    case TypeKind::kStruct: {
      out += '{';
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        if (i > 0) {
          out += ", ";
        }
        AppendOrNull(type.fields()[i].type, format.children[i], index, out);
      }
      out += '}';
      return;
    }
    case TypeKind::kVariant:
    case TypeKind::kTime:
      ThrowRowError(Error::Unsupported("a " + type.Sql() + " as text"));
  }
}

}  // namespace fleuve::engine
