#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "sql/parser_internal.h"
#include "types/value.h"

namespace fleuve::sql {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;
constexpr std::int64_t kMicrosPerMinute = 60 * kMicrosPerSecond;
constexpr std::int64_t kMicrosPerHour = 60 * kMicrosPerMinute;
constexpr std::int64_t kMicrosPerDay = 24 * kMicrosPerHour;

/// A unit of an interval: its family, its field in the family's type and its size.
struct IntervalUnit {
  std::string_view name;
  bool is_year_month;
  int field;          // year 0, month 1; day 0, hour 1, minute 2, second 3
  std::int64_t size;  // months or microseconds
};

constexpr IntervalUnit kUnits[] = {
    {"YEAR", true, 0, 12},
    {"MONTH", true, 1, 1},
    {"QUARTER", true, 1, 3},
    {"WEEK", false, 0, 7 * kMicrosPerDay},
    {"DAY", false, 0, kMicrosPerDay},
    {"HOUR", false, 1, kMicrosPerHour},
    {"MINUTE", false, 2, kMicrosPerMinute},
    {"SECOND", false, 3, kMicrosPerSecond},
    {"MILLISECOND", false, 3, 1000},
    {"MICROSECOND", false, 3, 1},
};

const IntervalUnit* FindUnit(std::string_view upper) {
  if (!upper.empty() && upper.back() == 'S') {
    upper.remove_suffix(1);
  }
  for (const IntervalUnit& unit : kUnits) {
    if (unit.name == upper && unit.name != "QUARTER") {
      return &unit;
    }
  }
  return nullptr;
}

bool IsDigits(std::string_view text) {
  for (const char c : text) {
    if (c < '0' || c > '9') {
      return false;
    }
  }
  return !text.empty();
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() &&
         (text.front() == ' ' || text.front() == '\t' || text.front() == '\n' || text.front() == '\r')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

/// `12`, `-3`, `1.5` times `unit`; decimals only where `fraction_allowed`. False where it is no such number.
bool ScaledNumber(std::string_view text, const IntervalUnit& unit, std::int64_t* out) {
  text = Trim(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const std::size_t point = text.find('.');
  std::string_view whole = text.substr(0, point);
  std::string_view fraction = point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (point != std::string_view::npos && unit.name != "SECOND") {
    return false;
  }
  if (whole.empty() && fraction.empty()) {
    return false;
  }
  if ((!whole.empty() && !IsDigits(whole)) || (!fraction.empty() && !IsDigits(fraction)) || fraction.size() > 9) {
    return false;
  }
  std::int64_t number = 0;
  if (std::from_chars(whole.data(), whole.data() + whole.size(), number).ec == std::errc::result_out_of_range) {
    return false;
  }
  std::int64_t scaled;
  if (__builtin_mul_overflow(number, unit.size, &scaled)) {
    return false;
  }
  if (!fraction.empty()) {
    std::string digits(fraction);
    digits.resize(6, '0');
    if (__builtin_add_overflow(scaled, std::strtoll(digits.c_str(), nullptr, 10), &scaled)) {
      return false;
    }
  }
  *out = negative ? -scaled : scaled;
  return true;
}

/// Which of Spark's errors says that `ScaledNumber` refused `text`.
std::string NumberCondition(std::string_view text, const IntervalUnit& unit) {
  const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  if (std::any_of(text.begin(), text.end(), is_letter)) {
    return "_LEGACY_ERROR_TEMP_0026";
  }
  text = Trim(text);
  const std::size_t point = text.find('.');
  const std::size_t digits = point == std::string_view::npos ? 0 : text.size() - point - 1;
  return text.find(' ') != std::string_view::npos                   ? "INVALID_INTERVAL_FORMAT.INVALID_UNIT"
         : point != std::string_view::npos && unit.name != "SECOND" ? "INVALID_INTERVAL_FORMAT.INVALID_FRACTION"
         : digits > 9                                               ? "INVALID_INTERVAL_FORMAT.INVALID_PRECISION"
         : text.empty()                                             ? "INVALID_INTERVAL_FORMAT.UNRECOGNIZED_NUMBER"
         : text.find_first_not_of("+-.0123456789") != std::string_view::npos ||
                 text.find_first_of("0123456789") == std::string_view::npos
             ? "INVALID_INTERVAL_FORMAT.INVALID_VALUE"
             : "INVALID_INTERVAL_FORMAT.ARITHMETIC_EXCEPTION";
}

void SetYearMonth(sc::Expression* expression, std::int64_t months, int start, int end) {
  auto* literal = expression->mutable_literal();
  literal->set_year_month_interval(static_cast<std::int32_t>(months));
  auto* type = literal->mutable_data_type()->mutable_year_month_interval();
  type->set_start_field(start);
  type->set_end_field(end);
}

void SetDayTime(sc::Expression* expression, std::int64_t micros, int start, int end) {
  auto* literal = expression->mutable_literal();
  literal->set_day_time_interval(micros);
  auto* type = literal->mutable_data_type()->mutable_day_time_interval();
  type->set_start_field(start);
  type->set_end_field(end);
}

/// `d h:m:s.f` from `start` to `end` field. False where the text has another shape.
bool ParseDayTime(std::string_view text, int start, int end, std::int64_t* micros) {
  text = Trim(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  static constexpr std::array<std::int64_t, 4> kSize = {kMicrosPerDay, kMicrosPerHour, kMicrosPerMinute,
                                                        kMicrosPerSecond};
  static constexpr std::array<std::int64_t, 4> kMax = {106751991, 23, 59, 59};
  std::int64_t total = 0;
  for (int field = start; field <= end; ++field) {
    std::size_t length = text.find_first_not_of("0123456789");
    if (length == std::string_view::npos) {
      length = text.size();
    }
    if (length == 0 || length > 18) {
      return false;
    }
    const std::int64_t value = std::strtoll(std::string(text.substr(0, length)).c_str(), nullptr, 10);
    text.remove_prefix(length);
    if (field != start && value > kMax[static_cast<std::size_t>(field)]) {
      return false;
    }
    std::int64_t scaled;
    if (__builtin_mul_overflow(value, kSize[static_cast<std::size_t>(field)], &scaled) ||
        __builtin_add_overflow(total, scaled, &total)) {
      return false;
    }
    if (field == 3 && !text.empty() && text.front() == '.') {
      text.remove_prefix(1);
      if (!IsDigits(text) || text.size() > 9) {
        return false;
      }
      std::string digits(text);
      digits.resize(6, '0');
      total += std::strtoll(digits.c_str(), nullptr, 10);
      text = {};
    }
    if (field < end) {
      const char separator = field == 0 ? ' ' : ':';
      if (text.empty() || text.front() != separator) {
        return false;
      }
      text.remove_prefix(1);
      while (field == 0 && !text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
      }
    }
  }
  if (!text.empty()) {
    return false;
  }
  *micros = negative ? -total : total;
  return true;
}

bool ParseYearMonth(std::string_view text, std::int64_t* months) {
  text = Trim(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos || !IsDigits(text.substr(0, dash)) || !IsDigits(text.substr(dash + 1)) ||
      dash > 9 || text.size() - dash > 3) {
    return false;
  }
  const std::int64_t years = std::strtoll(std::string(text.substr(0, dash)).c_str(), nullptr, 10);
  const std::int64_t rest = std::strtoll(std::string(text.substr(dash + 1)).c_str(), nullptr, 10);
  if (rest > 11) {
    return false;
  }
  *months = (years * 12 + rest) * (negative ? -1 : 1);
  return true;
}

/// Splits `1 day 2 hours`, `interval '3 days'` style text into (number, unit) pairs.
bool SplitInterval(std::string_view text, std::vector<std::pair<std::string, const IntervalUnit*>>* parts) {
  text = Trim(text);
  if (text.size() >= 8 && Upper(text.substr(0, 8)) == "INTERVAL") {
    text = Trim(text.substr(8));
  }
  while (!text.empty()) {
    std::string number;
    if (text.front() == '-' || text.front() == '+') {
      number.push_back(text.front());
      text = Trim(text.substr(1));
    }
    std::size_t length = 0;
    while (length < text.size() && ((text[length] >= '0' && text[length] <= '9') || text[length] == '.')) {
      ++length;
    }
    if (length == 0) {
      return false;
    }
    number += text.substr(0, length);
    text = Trim(text.substr(length));
    length = 0;
    while (length < text.size() && ((text[length] | 0x20) >= 'a' && (text[length] | 0x20) <= 'z')) {
      ++length;
    }
    const IntervalUnit* unit = FindUnit(Upper(text.substr(0, length)));
    if (unit == nullptr) {
      return false;
    }
    parts->emplace_back(std::move(number), unit);
    text = Trim(text.substr(length));
  }
  return !parts->empty();
}

}  // namespace

Result<Parser::Expr> Parser::ParseNumber(bool negative) {
  const Token& token = Current();
  const std::size_t first = at_;
  std::string digits = (negative ? "-" : "") + token.text;
  const TokenKind kind = token.kind;
  if (kind < TokenKind::kInteger || kind > TokenKind::kBigDecimal) {
    return SyntaxError();
  }
  Advance();
  Expr expression = New<sc::Expression>();
  auto* literal = expression->mutable_literal();
  const auto out_of_range = [&](const char* type, const char* low, const char* high) {
    return ErrorFrom(first, "INVALID_NUMERIC_LITERAL_RANGE",
                     "Numeric literal " + digits + " is outside the valid range for " + type +
                         " with minimum value of " + low + " and maximum value of " + high +
                         ". Please adjust the value accordingly.")
        .With("rawStrippedQualifier", digits)
        .With("minValue", low)
        .With("maxValue", high)
        .With("typeName", type);
  };
  const auto whole = [&](std::int64_t* value) {
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), *value);
    return result.ec == std::errc() && result.ptr == digits.data() + digits.size();
  };
  const auto decimal = [&](std::string text) -> Result<Expr> {
    // An exponent moves the point; a negative scale becomes zeros.
    auto parsed = types::DecimalFromString(text);
    if (!parsed.ok()) {
      return ErrorFrom(first, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
                       "Decimal precision exceeds max precision 38 in " + text + ".");
    }
    types::Int128 unscaled = parsed->first;
    const int scale = parsed->second;
    if (unscaled < 0) {
      unscaled = -unscaled;
    }
    int precision = 0;
    while (unscaled != 0) {
      ++precision;
      unscaled /= 10;
    }
    precision = std::max({precision, scale, 1});
    if (precision > 38) {
      return ErrorFrom(first, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
                       "Decimal precision " + std::to_string(precision) + " exceeds max precision 38.");
    }
    literal->mutable_decimal()->set_value(types::DecimalToString(parsed->first, scale));
    literal->mutable_decimal()->set_precision(precision);
    literal->mutable_decimal()->set_scale(scale);
    return Spanned(expression, first);
  };
  switch (kind) {
    case TokenKind::kInteger: {
      std::int64_t value = 0;
      if (!whole(&value)) {
        return decimal(digits);
      }
      if (value >= INT32_MIN && value <= INT32_MAX) {
        literal->set_integer(static_cast<std::int32_t>(value));
      } else {
        literal->set_long_(value);
      }
      return Spanned(expression, first);
    }
    case TokenKind::kLong: {
      std::int64_t value = 0;
      if (!whole(&value)) {
        return out_of_range("bigint", "-9223372036854775808", "9223372036854775807");
      }
      literal->set_long_(value);
      return Spanned(expression, first);
    }
    case TokenKind::kShort: {
      std::int64_t value = 0;
      if (!whole(&value) || value < -32768 || value > 32767) {
        return out_of_range("smallint", "-32768", "32767");
      }
      literal->set_short_(static_cast<std::int32_t>(value));
      return Spanned(expression, first);
    }
    case TokenKind::kByte: {
      std::int64_t value = 0;
      if (!whole(&value) || value < -128 || value > 127) {
        return out_of_range("tinyint", "-128", "127");
      }
      literal->set_byte(static_cast<std::int32_t>(value));
      return Spanned(expression, first);
    }
    case TokenKind::kDecimal:
    case TokenKind::kBigDecimal:
      return decimal(digits);
    case TokenKind::kFloat: {
      const float value = std::strtof(digits.c_str(), nullptr);
      if (std::isinf(value)) {
        return out_of_range("float", "-3.4028234663852886E+38", "3.4028234663852886E+38");
      }
      literal->set_float_(value);
      return Spanned(expression, first);
    }
    default: {
      const double value = std::strtod(digits.c_str(), nullptr);
      if (std::isinf(value)) {
        return out_of_range("double", "-1.7976931348623157E+308", "1.7976931348623157E+308");
      }
      literal->set_double_(value);
      return Spanned(expression, first);
    }
  }
}

Result<Parser::Expr> Parser::ParseTypedLiteral(const std::string& type, std::size_t first) {
  FLEUVE_ASSIGN(const std::string text, ParseString());
  Expr expression = New<sc::Expression>();
  auto* literal = expression->mutable_literal();
  const auto invalid = [&] {
    return ErrorFrom(first, "INVALID_TYPED_LITERAL",
                     "The value of the typed literal \"" + type + "\" is invalid: '" + text + "'.")
        .With("valueType", "\"" + type + "\"")
        .With("value", "'" + text + "'");
  };
  // Words for days and instants.
  const std::string word = Upper(Trim(text));
  const std::int64_t now_days =
      (options_.now_micros >= 0 ? options_.now_micros : options_.now_micros - kMicrosPerDay + 1) / kMicrosPerDay;
  if (type == "DATE") {
    if (word == "EPOCH" || word == "NOW" || word == "TODAY" || word == "TOMORROW" || word == "YESTERDAY") {
      const std::int64_t offset = word == "TOMORROW" ? 1 : word == "YESTERDAY" ? -1 : 0;
      literal->set_date(static_cast<std::int32_t>(word == "EPOCH" ? 0 : now_days + offset));
      return Spanned(expression, first);
    }
    const auto days = types::ParseDate(text);
    if (!days) {
      return invalid();
    }
    literal->set_date(static_cast<std::int32_t>(*days));
    return Spanned(expression, first);
  }
  if (type == "X") {
    std::string bytes;
    std::string digits = text.size() % 2 == 1 ? "0" + text : text;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      int value = 0;
      const auto result = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
      if (result.ec != std::errc() || result.ptr != digits.data() + i + 2) {
        return invalid();
      }
      bytes.push_back(static_cast<char>(value));
    }
    literal->set_binary(std::move(bytes));
    return Spanned(expression, first);
  }
  if (type == "TIME") {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_TIME_TYPE", "The data type TIME is not supported.");
  }
  const auto special = [&]() -> std::optional<std::int64_t> {
    if (word == "EPOCH") {
      return 0;
    }
    if (word == "NOW") {
      return options_.now_micros;
    }
    if (word == "TODAY" || word == "TOMORROW" || word == "YESTERDAY") {
      return (now_days + (word == "TOMORROW" ? 1 : word == "YESTERDAY" ? -1 : 0)) * kMicrosPerDay;
    }
    return std::nullopt;
  }();
  const bool zoned = types::ParseTimestampNtz(text) == std::nullopt;
  const bool ntz = type == "TIMESTAMP_NTZ" || (type == "TIMESTAMP" && !options_.timestamp_is_ltz && !zoned);
  if (special) {
    if (ntz) {
      literal->set_timestamp_ntz(*special);
    } else {
      literal->set_timestamp(*special);
    }
    return Spanned(expression, first);
  }
  if (ntz) {
    const auto micros = types::ParseTimestampNtz(text);
    if (!micros) {
      return invalid();
    }
    literal->set_timestamp_ntz(*micros);
    return Spanned(expression, first);
  }
  const auto micros = types::ParseTimestamp(text, options_.session_zone);
  if (!micros) {
    return invalid();
  }
  literal->set_timestamp(*micros);
  return Spanned(expression, first);
}

bool Parser::IsIntervalLiteralAhead() const {
  const auto is_value = [&](std::size_t ahead) {
    const TokenKind kind = Ahead(ahead).kind;
    return kind == TokenKind::kString || (kind >= TokenKind::kInteger && kind <= TokenKind::kBigDecimal);
  };
  if (is_value(1)) {
    return true;
  }
  return (IsSymbol("-", 1) || IsSymbol("+", 1)) && is_value(2) && Ahead(3).kind == TokenKind::kWord &&
         FindUnit(Ahead(3).upper) != nullptr;
}

Result<Parser::Expr> Parser::IntervalFromText(const std::string& text, std::size_t first) {
  std::vector<std::pair<std::string, const IntervalUnit*>> parts;
  const auto invalid = [&] {
    return ErrorFrom(first, "INVALID_TYPED_LITERAL",
                     "The value of the typed literal \"INTERVAL\" is invalid: '" + text + "'.")
        .With("valueType", "\"INTERVAL\"")
        .With("value", "'" + text + "'");
  };
  if (!SplitInterval(text, &parts)) {
    return invalid();
  }
  std::int64_t total = 0;
  int start = 3;
  int end = 0;
  const bool year_month = parts[0].second->is_year_month;
  for (const auto& [number, unit] : parts) {
    if (unit->is_year_month != year_month) {
      return ErrorFrom(first, "_LEGACY_ERROR_TEMP_0029",
                       "Cannot mix year-month and day-time fields: INTERVAL '" + text + "'.");
    }
    std::int64_t scaled;
    if (!ScaledNumber(number, *unit, &scaled) || __builtin_add_overflow(total, scaled, &total)) {
      return invalid();
    }
    start = std::min(start, unit->field);
    end = std::max(end, unit->field);
  }
  Expr expression = New<sc::Expression>();
  if (year_month) {
    SetYearMonth(expression, total, start, end);
  } else {
    SetDayTime(expression, total, start, end);
  }
  return Spanned(expression, first);
}

Result<Parser::Expr> Parser::ParseIntervalLiteral(std::size_t first) {
  // One string without a unit: `INTERVAL '1 day 2 hours'`.
  if (Current().kind == TokenKind::kString &&
      !(Ahead(1).kind == TokenKind::kWord && FindUnit(Ahead(1).upper) != nullptr) &&
      Ahead(1).kind != TokenKind::kString) {
    if (Ahead(1).kind == TokenKind::kWord && IsDigits(Trim(Current().text))) {
      Advance();
      return SyntaxError();  // `INTERVAL '1' FORTNIGHT`
    }
    FLEUVE_ASSIGN(const std::string text, ParseString());
    return IntervalFromText(text, first);
  }
  std::int64_t total = 0;
  int start = 3;
  int end = 0;
  bool year_month = false;
  bool is_first = true;
  while (true) {
    std::string sign;
    const std::size_t mark = at_;
    if (IsSymbol("-") || IsSymbol("+")) {
      sign = IsSymbol("-") ? "-" : "";
      Advance();
    }
    const TokenKind kind = Current().kind;
    const bool is_value = kind == TokenKind::kString || (kind >= TokenKind::kInteger && kind <= TokenKind::kBigDecimal);
    const bool has_unit = Ahead(1).kind == TokenKind::kWord && FindUnit(Ahead(1).upper) != nullptr;
    if (!is_value || !has_unit) {
      if (is_first) {
        if (is_value) {
          Advance();
        }
        return SyntaxError();
      }
      at_ = mark;
      break;
    }
    std::string number = Current().text;
    Advance();
    const IntervalUnit* unit = FindUnit(Current().upper);
    Advance();
    const auto invalid = [&] {
      return ErrorFrom(first, NumberCondition(number, *unit),
                       "Error parsing '" + number +
                           "' to interval. Please ensure that the value provided is in a valid "
                           "format for defining an interval.");
    };
    if (!sign.empty()) {
      const std::string_view trimmed = Trim(number);
      number = !trimmed.empty() && trimmed.front() == '-' ? std::string(trimmed.substr(1)) : "-" + std::string(trimmed);
    }
    if (is_first && IsWord("TO") && Ahead(1).kind == TokenKind::kWord && FindUnit(Ahead(1).upper) != nullptr) {
      Advance();
      const IntervalUnit* last = FindUnit(Current().upper);
      Advance();
      Expr expression = New<sc::Expression>();
      if (unit->is_year_month && last->is_year_month && unit->field < last->field) {
        std::int64_t months;
        if (!ParseYearMonth(number, &months)) {
          return ErrorFrom(first, "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING",
                           "Error parsing '" + number + "' to interval: the format is [+|-]y-m.");
        }
        SetYearMonth(expression, months, 0, 1);
        return Spanned(expression, first);
      }
      if (!unit->is_year_month && !last->is_year_month && unit->field < last->field && unit->name != "WEEK") {
        std::int64_t micros;
        if (!ParseDayTime(number, unit->field, last->field, &micros)) {
          return ErrorFrom(first, "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING_WITH_NOTICE",
                           "Error parsing '" + number + "' to interval of " + std::string(unit->name) + " TO " +
                               std::string(last->name) + ".");
        }
        SetDayTime(expression, micros, unit->field, last->field);
        return Spanned(expression, first);
      }
      return ErrorFrom(
          first, "INVALID_INTERVAL_FORMAT.UNSUPPORTED_FROM_TO_EXPRESSION",
          "Intervals FROM " + std::string(unit->name) + " TO " + std::string(last->name) + " are not supported.");
    }
    if (is_first) {
      year_month = unit->is_year_month;
    } else if (unit->is_year_month != year_month) {
      return ErrorFrom(first, "_LEGACY_ERROR_TEMP_0029",
                       "Cannot mix year-month and day-time fields: " + TextFrom(first));
    }
    std::int64_t scaled;
    if (!ScaledNumber(number, *unit, &scaled) || __builtin_add_overflow(total, scaled, &total)) {
      return invalid();
    }
    start = std::min(start, unit->field);
    end = std::max(end, unit->field);
    is_first = false;
  }
  Expr expression = New<sc::Expression>();
  if (year_month) {
    if (total > INT32_MAX || total < INT32_MIN) {
      return ErrorFrom(first, "INVALID_INTERVAL_FORMAT.ARITHMETIC_EXCEPTION", "The interval is out of range.");
    }
    SetYearMonth(expression, total, start, end);
  } else {
    SetDayTime(expression, total, start, end);
  }
  return Spanned(expression, first);
}

Result<std::int64_t> ParseDurationMicros(std::string_view text) {
  std::vector<std::pair<std::string, const IntervalUnit*>> parts;
  std::int64_t total = 0;
  bool ok = SplitInterval(text, &parts);
  for (const auto& [number, unit] : parts) {
    std::int64_t scaled = 0;
    ok = ok && !unit->is_year_month && ScaledNumber(number, *unit, &scaled) &&
         !__builtin_add_overflow(total, scaled, &total);
  }
  if (!ok) {
    return Error(
        ErrorKind::kInvalidArgument, "INVALID_INTERVAL_FORMAT.INVALID_PREFIX",
        "Error parsing '" + std::string(text) + "' to interval: a fixed length such as '10 minutes' is wanted.");
  }
  return total;
}

}  // namespace fleuve::sql
