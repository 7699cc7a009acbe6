#include <cmath>

#include "plan/expr.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;
using types::Value;

std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "'";
}

std::string Hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string TwoDigits(std::int64_t value) { return value < 10 ? "0" + std::to_string(value) : std::to_string(value); }

std::string SecondsText(std::int64_t micros) {
  std::string out = TwoDigits(micros / 1000000);
  std::int64_t fraction = micros % 1000000;
  if (fraction != 0) {
    std::string digits = std::to_string(fraction);
    digits.insert(0, 6 - digits.size(), '0');
    while (digits.back() == '0') {
      digits.pop_back();
    }
    out += "." + digits;
  }
  return out;
}

std::string DayTimeText(std::int64_t micros, int start, int end) {
  static constexpr const char* kNames[] = {"DAY", "HOUR", "MINUTE", "SECOND"};
  std::string out = "INTERVAL '";
  // The most negative value has no positive twin: work on unsigned magnitudes.
  std::uint64_t rest = micros < 0 ? ~static_cast<std::uint64_t>(micros) + 1 : static_cast<std::uint64_t>(micros);
  if (micros < 0) {
    out += "-";
  }
  static constexpr std::uint64_t kMicros[] = {86400000000ULL, 3600000000ULL, 60000000ULL, 1ULL};
  for (int field = start; field <= end; ++field) {
    if (field == 3) {
      if (field > start) {
        out += ":";
      }
      out += SecondsText(static_cast<std::int64_t>(rest));
      break;
    }
    const std::uint64_t amount = rest / kMicros[field];
    rest %= kMicros[field];
    if (field > start) {
      out += field == 1 ? " " : ":";
    }
    out += field == 0 ? std::to_string(amount) : TwoDigits(static_cast<std::int64_t>(amount));
  }
  out += "' ";
  out += kNames[start];
  if (start != end) {
    out += " TO ";
    out += kNames[end];
  }
  return out;
}

std::string YearMonthText(std::int64_t months, int start, int end) {
  const std::int64_t magnitude = months < 0 ? -months : months;
  const std::string sign = months < 0 ? "-" : "";
  if (start == 0 && end == 1) {
    return "INTERVAL '" + sign + std::to_string(magnitude / 12) + "-" + std::to_string(magnitude % 12) +
           "' YEAR TO MONTH";
  }
  if (start == 0) {
    return "INTERVAL '" + sign + std::to_string(magnitude / 12) + "' YEAR";
  }
  return "INTERVAL '" + sign + std::to_string(magnitude) + "' MONTH";
}

std::string CalendarText(const types::CalendarInterval& value) {
  std::string out;
  const auto add = [&out](std::int64_t amount, const char* unit) {
    if (amount != 0) {
      out += (out.empty() ? "" : " ") + std::to_string(amount) + " " + unit;
    }
  };
  add(value.months / 12, "years");
  add(value.months % 12, "months");
  add(value.days, "days");
  std::int64_t rest = value.micros;
  add(rest / 3600000000, "hours");
  rest %= 3600000000;
  add(rest / 60000000, "minutes");
  rest %= 60000000;
  if (rest != 0) {
    const std::int64_t magnitude = rest < 0 ? -rest : rest;
    std::string seconds = std::to_string(magnitude / 1000000);
    if (magnitude % 1000000 != 0) {
      std::string digits = std::to_string(magnitude % 1000000);
      digits.insert(0, 6 - digits.size(), '0');
      while (digits.back() == '0') {
        digits.pop_back();
      }
      seconds += "." + digits;
    }
    out += std::string(out.empty() ? "" : " ") + (rest < 0 ? "-" : "") + seconds + " seconds";
  }
  return out.empty() ? "0 seconds" : out;
}

std::string RealText(double value, TypeKind kind) {
  return kind == TypeKind::kFloat ? JavaFloatToString(static_cast<float>(value)) : JavaDoubleToString(value);
}

}  // namespace

std::string LiteralSql(const Value& value, const DataType& type, const std::string& zone) {
  if (value.is_null()) {
    return type.Is(TypeKind::kVoid) ? "NULL" : "CAST(NULL AS " + type.Sql() + ")";
  }
  switch (type.kind()) {
    case TypeKind::kVoid:
      return "NULL";
    case TypeKind::kBoolean:
      return value.boolean() ? "true" : "false";
    case TypeKind::kByte:
      return std::to_string(value.integer()) + "Y";
    case TypeKind::kShort:
      return std::to_string(value.integer()) + "S";
    case TypeKind::kInt:
      return std::to_string(value.integer());
    case TypeKind::kLong:
      return std::to_string(value.integer()) + "L";
    case TypeKind::kFloat:
      if (!std::isfinite(value.real())) {
        return "CAST('" + RealText(value.real(), TypeKind::kFloat) + "' AS FLOAT)";
      }
      return "CAST(" + RealText(value.real(), TypeKind::kFloat) + " AS FLOAT)";
    case TypeKind::kDouble:
      if (!std::isfinite(value.real())) {
        return "CAST('" + RealText(value.real(), TypeKind::kDouble) + "' AS DOUBLE)";
      }
      return RealText(value.real(), TypeKind::kDouble) + "D";
    case TypeKind::kDecimal:
      return types::DecimalToString(value.decimal(), type.scale()) + "BD";
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return Quoted(value.text());
    case TypeKind::kBinary:
      return "X'" + Hex(value.text()) + "'";
    case TypeKind::kDate:
      return "DATE '" + types::DateToString(value.integer()) + "'";
    case TypeKind::kTimestamp: {
      auto text = types::TimestampToString(value.integer(), zone);
      return "TIMESTAMP '" + (text.ok() ? *text : types::TimestampNtzToString(value.integer())) + "'";
    }
    case TypeKind::kTimestampNtz:
      return "TIMESTAMP_NTZ '" + types::TimestampNtzToString(value.integer()) + "'";
    case TypeKind::kDayTimeInterval:
      return DayTimeText(value.integer(), type.precision(), type.scale());
    case TypeKind::kYearMonthInterval:
      return YearMonthText(value.integer(), type.precision(), type.scale());
    case TypeKind::kCalendarInterval:
      return "INTERVAL '" + CalendarText(value.interval()) + "'";
    case TypeKind::kArray: {
      std::string out = "ARRAY(";
      for (std::size_t i = 0; i < value.list().size(); ++i) {
        out += (i > 0 ? ", " : "") + LiteralSql(value.list()[i], type.element(), zone);
      }
      return out + ")";
    }
    case TypeKind::kMap: {
      std::string out = "MAP(";
      for (std::size_t i = 0; i < value.list().size(); ++i) {
        const Value::List& entry = value.list()[i].list();
        out += (i > 0 ? ", " : "") + LiteralSql(entry[0], type.key(), zone) + ", " +
               LiteralSql(entry[1], type.value(), zone);
      }
      return out + ")";
    }
    case TypeKind::kStruct: {
      std::string out = "NAMED_STRUCT(";
      for (std::size_t i = 0; i < value.list().size(); ++i) {
        out += (i > 0 ? ", " : "") + Quoted(type.fields()[i].name) + ", " +
               LiteralSql(value.list()[i], type.fields()[i].type, zone);
      }
      return out + ")";
    }
    case TypeKind::kTime:
    case TypeKind::kVariant:
      return type.SimpleString();
  }
  return "";
}

std::string LiteralDisplay(const Value& value, const DataType& type, const std::string& zone) {
  if (value.is_null()) {
    return "NULL";
  }
  switch (type.kind()) {
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return value.text();
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      return std::to_string(value.integer());
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return RealText(value.real(), type.kind());
    case TypeKind::kDecimal:
      return types::DecimalToString(value.decimal(), type.scale());
    default:
      return LiteralSql(value, type, zone);
  }
}

}  // namespace fleuve::plan
