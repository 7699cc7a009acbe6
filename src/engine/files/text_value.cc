#include <charconv>
#include <limits>

#include "engine/files/json_value_internal.h"
#include "engine/files/row_target_internal.h"
#include "engine/files/text_value_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

namespace {

using types::TypeKind;

template <typename T>
void Store(duckdb::Vector& out, duckdb::idx_t row, T value) {
  duckdb::FlatVector::GetData<T>(out)[row] = value;
  duckdb::FlatVector::Validity(out).SetValid(row);
}

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != lower[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool ParseJavaInteger(std::string_view text, std::int64_t* value) {
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text[0] == '-') {
      return false;
    }
  }
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size();
}

bool ParseJavaDouble(std::string_view text, double* value) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') {
    text.remove_suffix(1);
  }
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  double parsed = 0;
  if (text == "NaN") {
    parsed = std::numeric_limits<double>::quiet_NaN();
  } else if (text == "Infinity") {
    parsed = std::numeric_limits<double>::infinity();
  } else {
    if (!text.empty() && (text.back() == 'd' || text.back() == 'D' || text.back() == 'f' || text.back() == 'F')) {
      text.remove_suffix(1);
    }
    if (text.empty() || (!(text[0] >= '0' && text[0] <= '9') && text[0] != '.')) {
      return false;
    }
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (end != text.data() + text.size()) {
      return false;
    }
    if (code == std::errc::result_out_of_range) {
      const std::size_t e = text.find_first_of("eE");
      const bool tiny = (e != std::string_view::npos && e + 1 < text.size() && text[e + 1] == '-') ||
                        (e == std::string_view::npos && text[0] == '0');
      parsed = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    } else if (code != std::errc()) {
      return false;
    }
  }
  *value = negative ? -parsed : parsed;
  return true;
}

bool StoreCsvValue(const CsvOptions& options, const types::DataType& type, std::string_view text, duckdb::Vector& out,
                   duckdb::idx_t row) {
  switch (type.kind()) {
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      SetText(out, row, text);
      return true;
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong: {
      std::int64_t value = 0;
      if (!ParseJavaInteger(text, &value)) {
        return false;
      }
      switch (type.kind()) {
        case TypeKind::kByte:
          if (value < -128 || value > 127) {
            return false;
          }
          Store(out, row, static_cast<std::int8_t>(value));
          return true;
        case TypeKind::kShort:
          if (value < -32768 || value > 32767) {
            return false;
          }
          Store(out, row, static_cast<std::int16_t>(value));
          return true;
        case TypeKind::kInt:
          if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
            return false;
          }
          Store(out, row, static_cast<std::int32_t>(value));
          return true;
        default:
          Store(out, row, value);
          return true;
      }
    }
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      double value = 0;
      if (text == options.nan_value) {
        value = std::numeric_limits<double>::quiet_NaN();
      } else if (text == options.positive_infinity) {
        value = std::numeric_limits<double>::infinity();
      } else if (text == options.negative_infinity) {
        value = -std::numeric_limits<double>::infinity();
      } else if (!ParseJavaDouble(text, &value)) {
        return false;
      }
      if (type.Is(TypeKind::kFloat)) {
        Store(out, row, static_cast<float>(value));
      } else {
        Store(out, row, value);
      }
      return true;
    }
    case TypeKind::kBoolean:
      if (EqualsIgnoringCase(text, "true")) {
        Store(out, row, true);
        return true;
      }
      if (EqualsIgnoringCase(text, "false")) {
        Store(out, row, false);
        return true;
      }
      return false;
    case TypeKind::kDecimal: {
      types::Int128 value = 0;
      if (!ParseDecimalText(text, type.precision(), type.scale(), &value)) {
        return false;
      }
      SetDecimal(out, row, value, type.precision());
      return true;
    }
    case TypeKind::kDate: {
      auto days = options.times.ReadDate(text, options.parsing_fallback);
      if (!days) {
        return false;
      }
      Store(out, row, duckdb::date_t(static_cast<std::int32_t>(*days)));
      return true;
    }
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz: {
      const auto micros = type.Is(TypeKind::kTimestamp) ? options.times.ReadTimestamp(text, options.parsing_fallback)
                                                        : options.times.ParseTimestampNtz(text);
      if (!micros) {
        return false;
      }
      Store(out, row, duckdb::timestamp_t(*micros));
      return true;
    }
    case TypeKind::kVoid:
      SetNull(out, row);
      return true;
    default:
      RaiseError(Error(ErrorKind::kUnsupported, "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
                       "The CSV datasource doesn't support the type \"" + type.Sql() + "\"."));
  }
}

}  // namespace fleuve::engine
