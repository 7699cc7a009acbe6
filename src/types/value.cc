#include "types/value.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "base/bytes.h"
#include "types/time_zone.h"

namespace fleuve::types {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1000000;
constexpr std::int64_t kMicrosPerDay = 86400 * kMicrosPerSecond;

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q * b > a ? q - 1 : q;
}

bool Digit(char c) { return c >= '0' && c <= '9'; }

unsigned DaysInMonth(std::int64_t year, unsigned month) {
  constexpr std::array<unsigned, 12> days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : days[month - 1];
}

/// What a date or timestamp text was made of.
struct ParsedTime {
  std::int64_t days = 0;
  std::int64_t micros_of_day = 0;
  bool has_date = false;
  bool has_time = false;
  std::string zone;
};

/// Reads up to `digits_max` digits; the number of digits read, or 0.
std::size_t ReadNumber(std::string_view text, std::size_t at, std::size_t digits_max, std::int64_t* out) {
  std::size_t n = 0;
  *out = 0;
  while (at + n < text.size() && n < digits_max && Digit(text[at + n])) {
    *out = *out * 10 + (text[at + n] - '0');
    ++n;
  }
  return n;
}

/// `[+-]y+[-m[-d]]` at the start; how many characters, or 0 where it is no date.
std::size_t ReadDate(std::string_view text, std::int64_t* days, bool* whole) {
  std::size_t at = 0;
  std::int64_t sign = 1;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    sign = text[0] == '-' ? -1 : 1;
    at = 1;
  }
  std::int64_t year = 0;
  std::int64_t month = 1;
  std::int64_t day = 1;
  const std::size_t year_digits = ReadNumber(text, at, 7, &year);
  if (year_digits < 4) {
    return 0;
  }
  at += year_digits;
  *whole = false;
  if (at < text.size() && text[at] == '-') {
    const std::size_t n = ReadNumber(text, at + 1, 2, &month);
    if (n == 0) {
      return 0;
    }
    at += 1 + n;
    if (at < text.size() && text[at] == '-') {
      const std::size_t m = ReadNumber(text, at + 1, 2, &day);
      if (m == 0) {
        return 0;
      }
      at += 1 + m;
      *whole = true;
    }
  }
  year *= sign;
  if (month < 1 || month > 12 || day < 1 ||
      day > static_cast<std::int64_t>(DaysInMonth(year, static_cast<unsigned>(month)))) {
    return 0;
  }
  *days = DaysFromCivil(year, static_cast<unsigned>(month), static_cast<unsigned>(day));
  return at;
}

/// `h:m[:s[.f]]` and an optional zone behind it.
bool ReadTimeAndZone(std::string_view text, ParsedTime* out) {
  std::int64_t hour = 0;
  std::int64_t minute = 0;
  std::int64_t second = 0;
  std::int64_t fraction = 0;
  std::size_t n = ReadNumber(text, 0, 2, &hour);
  if (n > 0 && n == text.size() && out->has_date && hour <= 23) {
    out->micros_of_day = hour * 3600 * kMicrosPerSecond;
    out->has_time = true;
    return true;
  }
  if (n == 0 || n >= text.size() || text[n] != ':') {
    return false;
  }
  std::size_t at = n + 1;
  n = ReadNumber(text, at, 2, &minute);
  if (n == 0) {
    return false;
  }
  at += n;
  if (at < text.size() && text[at] == ':') {
    n = ReadNumber(text, at + 1, 2, &second);
    if (n == 0) {
      return false;
    }
    at += 1 + n;
    if (at < text.size() && text[at] == '.') {
      ++at;
      std::int64_t scale = kMicrosPerSecond / 10;
      while (at < text.size() && Digit(text[at])) {
        fraction += (text[at] - '0') * scale;
        scale /= 10;
        ++at;
      }
    }
  }
  if (hour > 23 || minute > 59 || second > 59) {
    return false;
  }
  out->micros_of_day = ((hour * 60 + minute) * 60 + second) * kMicrosPerSecond + fraction;
  out->has_time = true;
  out->zone = std::string(TrimAscii(text.substr(at)));
  return true;
}

std::optional<ParsedTime> ParseTime(std::string_view text) {
  text = TrimAscii(text);
  ParsedTime parsed;
  if (text.empty()) {
    return std::nullopt;
  }
  bool whole = false;
  const std::size_t n = ReadDate(text, &parsed.days, &whole);
  if (n == 0) {
    if (text[0] == 'T') {
      text.remove_prefix(1);
    }
    if (!ReadTimeAndZone(text, &parsed)) {
      return std::nullopt;
    }
    return parsed;
  }
  parsed.has_date = true;
  if (n == text.size()) {
    return parsed;
  }
  if (!whole || (text[n] != ' ' && text[n] != 'T')) {
    return std::nullopt;
  }
  const std::string_view rest = TrimAscii(text.substr(n + 1));
  if (rest.empty()) {
    return text[n] == 'T' ? std::optional<ParsedTime>(parsed) : parsed;
  }
  if (!ReadTimeAndZone(rest, &parsed)) {
    return std::nullopt;
  }
  return parsed;
}

std::string TimeOfDay(std::int64_t micros) {
  const std::int64_t seconds = micros / kMicrosPerSecond;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%02d:%02d:%02d", static_cast<int>(seconds / 3600),
                static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60));
  std::string out = text.data();
  if (const auto fraction = micros % kMicrosPerSecond; fraction != 0) {
    std::snprintf(text.data(), text.size(), ".%06d", static_cast<int>(fraction));
    std::string digits = text.data();
    while (digits.back() == '0') {
      digits.pop_back();
    }
    out += digits;
  }
  return out;
}

}  // namespace

bool Value::operator==(const Value& other) const {
  if (data_.index() != other.data_.index()) {
    return false;
  }
  const auto* list_a = std::get_if<std::shared_ptr<const List>>(&data_);
  if (list_a != nullptr) {
    return **list_a == other.list();
  }
  return data_ == other.data_;
}

std::string DecimalToString(Int128 unscaled, int scale) {
  const bool negative = unscaled < 0;
  auto rest = negative ? -static_cast<unsigned __int128>(unscaled) : static_cast<unsigned __int128>(unscaled);
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  while (static_cast<int>(digits.size()) <= scale) {
    digits += '0';
  }
  std::reverse(digits.begin(), digits.end());
  if (scale > 0) {
    digits.insert(digits.size() - static_cast<std::size_t>(scale), ".");
  } else if (scale < 0 && unscaled != 0) {
    digits.append(static_cast<std::size_t>(-scale), '0');
  }
  return negative ? "-" + digits : digits;
}

Result<std::pair<Int128, int>> DecimalFromString(std::string_view text) {
  const auto refuse = [&] {
    return Error(ErrorKind::kInvalidArgument, "CAST_INVALID_INPUT",
                 "The value '" + std::string(text) + "' is no decimal number of at most 38 digits.");
  };
  std::size_t at = 0;
  bool negative = false;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    negative = text[at++] == '-';
  }
  Int128 unscaled = 0;
  int scale = 0;
  int significant = 0;
  bool any = false;
  bool after_point = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !after_point) {
      after_point = true;
    } else if (Digit(text[at])) {
      any = true;
      if (significant > 0 || text[at] != '0') {
        ++significant;
      }
      if (significant > 38) {
        return refuse();
      }
      unscaled = unscaled * 10 + (text[at] - '0');
      scale += after_point ? 1 : 0;
    } else {
      break;
    }
  }
  if (!any) {
    return refuse();
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    bool exponent_negative = false;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
      exponent_negative = text[at++] == '-';
    }
    std::int64_t exponent = 0;
    const std::size_t n = ReadNumber(text, at, 5, &exponent);
    if (n == 0) {
      return refuse();
    }
    at += n;
    scale -= static_cast<int>(exponent_negative ? -exponent : exponent);
    if (unscaled == 0) {
      scale = std::clamp(scale, 0, 38);
    }
    while (scale < 0) {
      if (++significant > 38) {
        return refuse();
      }
      unscaled *= 10;
      ++scale;
    }
  }
  if (at != text.size()) {
    return refuse();
  }
  return std::pair<Int128, int>(negative ? -unscaled : unscaled, scale);
}

std::int64_t DaysFromCivil(std::int64_t year, unsigned month, unsigned day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = FloorDiv(year, 400);
  const auto year_of_era = static_cast<std::int64_t>(year - era * 400);
  const std::int64_t day_of_year = (153 * (static_cast<std::int64_t>(month) + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

void CivilFromDays(std::int64_t days, std::int64_t* year, unsigned* month, unsigned* day) {
  days += 719468;
  const std::int64_t era = FloorDiv(days, 146097);
  const std::int64_t day_of_era = days - era * 146097;
  const std::int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted_month = (5 * day_of_year + 2) / 153;
  *day = static_cast<unsigned>(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  *month = static_cast<unsigned>(shifted_month + (shifted_month < 10 ? 3 : -9));
  *year = year_of_era + era * 400 + (*month <= 2 ? 1 : 0);
}

std::string DateToString(std::int64_t days) {
  std::int64_t year = 0;
  unsigned month = 0;
  unsigned day = 0;
  CivilFromDays(days, &year, &month, &day);
  std::array<char, 48> text{};
  if (year < 0) {
    std::snprintf(text.data(), text.size(), "-%04lld-%02u-%02u", static_cast<long long>(-year), month, day);
  } else {
    std::snprintf(text.data(), text.size(), "%s%04lld-%02u-%02u", year > 9999 ? "+" : "", static_cast<long long>(year),
                  month, day);
  }
  return text.data();
}

std::string TimestampNtzToString(std::int64_t micros) {
  const std::int64_t days = FloorDiv(micros, kMicrosPerDay);
  return DateToString(days) + " " + TimeOfDay(micros - days * kMicrosPerDay);
}

Result<std::string> TimestampToString(std::int64_t micros, const std::string& zone) {
  FLEUVE_ASSIGN(const auto found, TimeZone::Find(zone));
  return TimestampNtzToString(found->UtcToLocal(micros));
}

std::optional<std::int64_t> ParseDate(std::string_view text) {
  text = TrimAscii(text);
  std::int64_t days = 0;
  bool whole = false;
  const std::size_t n = ReadDate(text, &days, &whole);
  if (n == 0) {
    return std::nullopt;
  }
  if (n == text.size() || (whole && (text[n] == ' ' || text[n] == 'T'))) {
    return days;
  }
  return std::nullopt;
}

std::optional<std::int64_t> ParseTimestamp(std::string_view text, const std::string& zone) {
  const auto parsed = ParseTime(text);
  if (!parsed || !parsed->has_date) {
    return std::nullopt;
  }
  const auto found = TimeZone::Find(parsed->zone.empty() ? zone : parsed->zone);
  if (!found.ok()) {
    return std::nullopt;
  }
  std::int64_t local = 0;
  if (__builtin_mul_overflow(parsed->days, kMicrosPerDay, &local) ||
      __builtin_add_overflow(local, parsed->micros_of_day, &local)) {
    return std::nullopt;
  }
  return (*found)->LocalToUtc(local);
}

std::optional<std::int64_t> ParseTimestampNtz(std::string_view text) {
  const auto parsed = ParseTime(text);
  if (!parsed || !parsed->has_date) {
    return std::nullopt;
  }
  if (!parsed->zone.empty() && !TimeZone::Find(parsed->zone).ok()) {
    return std::nullopt;
  }
  std::int64_t local = 0;
  if (__builtin_mul_overflow(parsed->days, kMicrosPerDay, &local) ||
      __builtin_add_overflow(local, parsed->micros_of_day, &local)) {
    return std::nullopt;
  }
  return local;
}

}  // namespace fleuve::types
