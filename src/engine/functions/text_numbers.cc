#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "base/bytes.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/text_numbers_internal.h"

namespace fleuve::engine {

std::string_view TrimAll(std::string_view text) {
  auto blank = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) == 0x7f; };
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lower(std::string_view text) { return AsciiLower(text); }

}  // namespace

std::optional<std::int64_t> ParseLong(std::string_view text, bool fraction_allowed) {
  text = TrimAll(text);
  if (text.empty()) {
    return std::nullopt;
  }
  bool negative = text.front() == '-';
  if (text.front() == '-' || text.front() == '+') {
    text.remove_prefix(1);
    if (text.empty()) {
      return std::nullopt;
    }
  }
  // Below zero, so that the smallest value fits.
  std::int64_t value = 0;
  std::size_t i = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i) {
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
        __builtin_sub_overflow(value, std::int64_t{text[i] - '0'}, &value)) {
      return std::nullopt;
    }
  }
  if (i < text.size()) {
    if (!fraction_allowed || text[i] != '.') {
      return std::nullopt;
    }
    for (++i; i < text.size(); ++i) {
      if (!IsDigit(text[i])) {
        return std::nullopt;
      }
    }
  }
  if (negative) {
    return value;
  }
  if (value == std::numeric_limits<std::int64_t>::min()) {
    return std::nullopt;
  }
  return -value;
}

namespace {

template <typename T>
std::optional<T> ParseReal(std::string_view text) {
  text = TrimAll(text);
  std::string_view body = text;
  bool negative = false;
  if (!body.empty() && (body.front() == '-' || body.front() == '+')) {
    negative = body.front() == '-';
    body.remove_prefix(1);
  }
  if (body.empty()) {
    return std::nullopt;
  }
  if (!IsDigit(body.front()) && body.front() != '.') {
    std::string lowered = Lower(body);
    T value = 0;
    if (lowered == "inf" || lowered == "infinity") {
      value = std::numeric_limits<T>::infinity();
    } else if (lowered == "nan" && text.size() == 3) {
      return std::numeric_limits<T>::quiet_NaN();
    } else {
      return std::nullopt;
    }
    return negative ? -value : value;
  }
  std::size_t i = 0;
  std::size_t digits = 0;
  while (i < body.size() && IsDigit(body[i])) {
    ++i;
    ++digits;
  }
  if (i < body.size() && body[i] == '.') {
    ++i;
    while (i < body.size() && IsDigit(body[i])) {
      ++i;
      ++digits;
    }
  }
  if (digits == 0) {
    return std::nullopt;
  }
  if (i < body.size() && (body[i] == 'e' || body[i] == 'E')) {
    ++i;
    if (i < body.size() && (body[i] == '-' || body[i] == '+')) {
      ++i;
    }
    std::size_t start = i;
    while (i < body.size() && IsDigit(body[i])) {
      ++i;
    }
    if (i == start) {
      return std::nullopt;
    }
  }
  std::size_t end = i;
  if (i < body.size() && (body[i] == 'd' || body[i] == 'D' || body[i] == 'f' || body[i] == 'F')) {
    ++i;
  }
  if (i != body.size()) {
    return std::nullopt;
  }
  T value = 0;
  auto [rest, code] = std::from_chars(body.data(), body.data() + end, value);
  if (code == std::errc::result_out_of_range) {
    // Too large or too small: strtod tells which.
    double wide = std::strtod(std::string(body.substr(0, end)).c_str(), nullptr);
    value = static_cast<T>(wide);
  } else if (code != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace

std::optional<double> ParseDouble(std::string_view text) { return ParseReal<double>(text); }
std::optional<float> ParseFloat(std::string_view text) { return ParseReal<float>(text); }

std::optional<bool> ParseBoolean(std::string_view text) {
  text = TrimAll(text);
  if (text.size() > 5) {
    return std::nullopt;
  }
  std::string lowered = Lower(text);
  if (lowered == "true" || lowered == "t" || lowered == "yes" || lowered == "y" || lowered == "1") {
    return true;
  }
  if (lowered == "false" || lowered == "f" || lowered == "no" || lowered == "n" || lowered == "0") {
    return false;
  }
  return std::nullopt;
}

DecimalParse ParseDecimal(std::string_view text, int precision, int scale, types::Int128* out) {
  text = TrimAll(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  std::string digits;
  std::int64_t exponent = 0;
  std::size_t i = 0;
  std::size_t seen = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i, ++seen) {
    if (!digits.empty() || text[i] != '0') {
      digits += text[i];
    }
  }
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && IsDigit(text[i]); ++i, ++seen) {
      --exponent;
      if (!digits.empty() || text[i] != '0') {
        digits += text[i];
      }
    }
  }
  if (seen == 0) {
    return DecimalParse::kMalformed;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    bool minus = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) {
      minus = text[i] == '-';
      ++i;
    }
    std::size_t start = i;
    std::int64_t power = 0;
    for (; i < text.size() && IsDigit(text[i]); ++i) {
      power = std::min<std::int64_t>(power * 10 + (text[i] - '0'), 1000000000);
    }
    if (i == start) {
      return DecimalParse::kMalformed;
    }
    exponent += minus ? -power : power;
  }
  if (i != text.size()) {
    return DecimalParse::kMalformed;
  }
  if (digits.empty()) {
    *out = 0;
    return DecimalParse::kOk;
  }
  // Digits of the result: those before 10^-scale.
  std::int64_t keep = static_cast<std::int64_t>(digits.size()) + exponent + scale;
  if (keep < 0) {
    *out = 0;
    return DecimalParse::kOk;
  }
  if (keep > 39) {
    return DecimalParse::kOverflow;
  }
  Int128 value = 0;
  for (std::int64_t k = 0; k < keep; ++k) {
    int digit = k < static_cast<std::int64_t>(digits.size()) ? digits[static_cast<std::size_t>(k)] - '0' : 0;
    if (__builtin_mul_overflow(value, Int128{10}, &value) || __builtin_add_overflow(value, Int128{digit}, &value)) {
      return DecimalParse::kOverflow;
    }
  }
  if (keep < static_cast<std::int64_t>(digits.size()) && digits[static_cast<std::size_t>(keep)] >= '5') {
    value += 1;
  }
  if (value >= PowerOfTen(precision)) {
    return DecimalParse::kOverflow;
  }
  *out = negative ? -value : value;
  return DecimalParse::kOk;
}

DecimalParse DecimalOfReal(double value, int precision, int scale, types::Int128* out) {
  // Whole numbers up to 10^15 and powers of ten up to 10^22 are exact, and so a quotient of them that gives the value
  // back is its shortest text: two decimals of so few digits are never the same double.
  constexpr double kExact = 1e15;
  static constexpr auto kPowers =
      std::to_array<double>({1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15});
  const auto at = static_cast<std::size_t>(scale);
  if (at < kPowers.size() && at <= static_cast<std::size_t>(precision)) {
    const double scaled = std::nearbyint(value * kPowers[at]);
    const double bound = precision < 15 ? kPowers[static_cast<std::size_t>(precision)] : kExact;
    if (std::fabs(scaled) < bound && scaled / kPowers[at] == value) {
      *out = static_cast<std::int64_t>(scaled);
      return DecimalParse::kOk;
    }
  }
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
  return ParseDecimal(std::string_view(text, static_cast<std::size_t>(end - text)), precision, scale, out);
}

namespace {

/// The quoted part of `INTERVAL '...' UNIT [TO UNIT]` (the units must be those of the type), or the text itself.
std::optional<std::string> IntervalBody(std::string_view text, const std::string& units, bool* negative) {
  std::string trimmed(TrimAll(text));
  *negative = false;
  std::string lowered = Lower(trimmed);
  if (lowered.rfind("interval", 0) != 0) {
    return trimmed;
  }
  std::string_view rest = TrimAll(std::string_view(trimmed).substr(8));
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    *negative = rest.front() == '-';
    rest = TrimAll(rest.substr(1));
  }
  if (rest.size() < 2 || rest.front() != '\'') {
    return std::nullopt;
  }
  std::size_t close = rest.find('\'', 1);
  if (close == std::string_view::npos) {
    return std::nullopt;
  }
  std::string unit = AsciiUpper(TrimAll(rest.substr(close + 1)));
  if (unit != units) {
    return std::nullopt;
  }
  return std::string(rest.substr(1, close - 1));
}

bool TakeNumber(std::string_view& text, std::int64_t* out) {
  std::size_t n = 0;
  std::int64_t value = 0;
  while (n < text.size() && IsDigit(text[n])) {
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
        __builtin_add_overflow(value, std::int64_t{text[n] - '0'}, &value)) {
      return false;
    }
    ++n;
  }
  text.remove_prefix(n);
  *out = value;
  return n > 0;
}

}  // namespace

std::optional<std::int64_t> ParseDayTime(std::string_view input, const types::DataType& type) {
  static constexpr const char* kNames[] = {"DAY", "HOUR", "MINUTE", "SECOND"};
  static constexpr std::int64_t kMicros[] = {86400000000, 3600000000, 60000000, 1000000};
  int start = type.precision();
  int end = type.scale();
  std::string units = kNames[start];
  if (start != end) {
    units += std::string(" TO ") + kNames[end];
  }
  bool negative = false;
  auto body = IntervalBody(input, units, &negative);
  if (!body) {
    return std::nullopt;
  }
  std::string_view text = *body;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = negative != (text.front() == '-');
    text.remove_prefix(1);
  }
  std::int64_t total = 0;
  for (int field = start; field <= end; ++field) {
    if (field > start) {
      char separator = field == 1 ? ' ' : ':';
      if (text.empty() || text.front() != separator) {
        return std::nullopt;
      }
      text.remove_prefix(1);
    }
    std::int64_t amount = 0;
    if (!TakeNumber(text, &amount)) {
      return std::nullopt;
    }
    if (field > start && ((field == 1 && amount > 23) || (field > 1 && amount > 59))) {
      return std::nullopt;
    }
    std::int64_t micros = 0;
    if (__builtin_mul_overflow(amount, kMicros[field], &micros) || __builtin_add_overflow(total, micros, &total)) {
      return std::nullopt;
    }
    if (field == 3 && !text.empty() && text.front() == '.') {
      text.remove_prefix(1);
      std::int64_t unit = 100000;
      std::size_t digits = 0;
      while (!text.empty() && IsDigit(text.front()) && digits < 9) {
        total += (text.front() - '0') * unit;
        unit /= 10;
        text.remove_prefix(1);
        ++digits;
      }
    }
  }
  if (!text.empty()) {
    return std::nullopt;
  }
  return negative ? -total : total;
}

std::optional<std::int64_t> ParseYearMonth(std::string_view input, const types::DataType& type) {
  int start = type.precision();
  int end = type.scale();
  std::string units = start != end ? "YEAR TO MONTH" : start == 0 ? "YEAR" : "MONTH";
  bool negative = false;
  auto body = IntervalBody(input, units, &negative);
  if (!body) {
    return std::nullopt;
  }
  std::string_view text = *body;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = negative != (text.front() == '-');
    text.remove_prefix(1);
  }
  std::int64_t months = 0;
  if (!TakeNumber(text, &months)) {
    return std::nullopt;
  }
  if (start == 0) {
    months *= 12;
  }
  if (start != end) {
    std::int64_t more = 0;
    if (text.empty() || text.front() != '-') {
      return std::nullopt;
    }
    text.remove_prefix(1);
    if (!TakeNumber(text, &more) || more > 11) {
      return std::nullopt;
    }
    months += more;
  }
  if (!text.empty() || months > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return negative ? -months : months;
}

}  // namespace fleuve::engine
