#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "engine/files/date_pattern_internal.h"
#include "types/value.h"

namespace fleuve::engine {

namespace {

constexpr std::int64_t kMicrosPerSecond = 1000000;
constexpr std::int64_t kMicrosPerDay = 86400 * kMicrosPerSecond;

constexpr std::array<const char*, 12> kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                                 "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<const char*, 7> kDays = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                              "Friday", "Saturday", "Sunday"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Digits at `position`, at least `least`, at most `most`; false where there are fewer.
bool TakeNumber(std::string_view text, std::size_t& position, int least, int most, std::int64_t* value) {
  std::int64_t result = 0;
  int count = 0;
  while (count < most && position < text.size() && IsDigit(text[position])) {
    result = result * 10 + (text[position] - '0');
    ++position;
    ++count;
  }
  *value = result;
  return count >= least;
}

bool TakeText(std::string_view text, std::size_t& position, std::string_view wanted) {
  if (text.substr(position, wanted.size()) != wanted) {
    return false;
  }
  position += wanted.size();
  return true;
}

bool IsLeap(std::int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

unsigned DaysInMonth(std::int64_t year, unsigned month) {
  constexpr std::array<unsigned, 12> kLengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeap(year) ? 29 : kLengths[month - 1];
}

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a ^ b) < 0 ? 1 : 0); }

void AppendPadded(std::string& out, std::int64_t value, int width) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%0*lld", width, static_cast<long long>(value));
  out += buffer;
}

void AppendOffset(std::string& out, std::int64_t seconds, bool colon, bool minutes_always, bool minutes_if_any,
                  bool with_seconds) {
  const std::int64_t magnitude = seconds < 0 ? -seconds : seconds;
  out.push_back(seconds < 0 ? '-' : '+');
  AppendPadded(out, magnitude / 3600, 2);
  const std::int64_t minutes = magnitude / 60 % 60;
  if (minutes_always || (minutes_if_any && minutes != 0)) {
    if (colon) {
      out.push_back(':');
    }
    AppendPadded(out, minutes, 2);
    if (with_seconds && magnitude % 60 != 0) {
      if (colon) {
        out.push_back(':');
      }
      AppendPadded(out, magnitude % 60, 2);
    }
  }
}

/// `+01:00`, `+0100`, `+01`, with seconds too. \param colon  1 demanded, 0 none allowed.
bool TakeOffset(std::string_view text, std::size_t& position, bool colon, bool minutes_needed, std::int64_t* seconds) {
  if (position >= text.size() || (text[position] != '+' && text[position] != '-')) {
    return false;
  }
  const bool negative = text[position] == '-';
  std::size_t at = position + 1;
  std::int64_t hours = 0;
  std::int64_t minutes = 0;
  std::int64_t rest = 0;
  if (!TakeNumber(text, at, 2, 2, &hours)) {
    return false;
  }
  bool has_minutes = false;
  std::size_t after = at;
  if (!colon || (after < text.size() && text[after] == ':')) {
    after += colon ? 1 : 0;
    std::size_t probe = after;
    if (TakeNumber(text, probe, 2, 2, &minutes)) {
      has_minutes = true;
      at = probe;
      after = at;
      if (!colon || (after < text.size() && text[after] == ':')) {
        after += colon ? 1 : 0;
        probe = after;
        if (TakeNumber(text, probe, 2, 2, &rest)) {
          at = probe;
        } else {
          rest = 0;
        }
      }
    } else {
      minutes = 0;
    }
  }
  if (minutes_needed && !has_minutes) {
    return false;
  }
  if (hours > 18 || minutes > 59 || rest > 59) {
    return false;
  }
  *seconds = hours * 3600 + minutes * 60 + rest;
  if (negative) {
    *seconds = -*seconds;
  }
  position = at;
  return true;
}

int TwoDigits(const char* p) { return IsDigit(p[0]) && IsDigit(p[1]) ? (p[0] - '0') * 10 + (p[1] - '0') : -1; }

/// `yyyy-MM-dd` at the begin of the text; false where it is anything else.
bool PlainDate(std::string_view text, std::int64_t* days) {
  const char* p = text.data();
  if (text.size() < 10 || p[4] != '-' || p[7] != '-') {
    return false;
  }
  const int century = TwoDigits(p);
  const int rest = TwoDigits(p + 2);
  const int month = TwoDigits(p + 5);
  const int day = TwoDigits(p + 8);
  if (century < 0 || rest < 0 || month < 1 || month > 12 || day < 1) {
    return false;
  }
  const std::int64_t year = century * 100 + rest;
  if (static_cast<unsigned>(day) > DaysInMonth(year, static_cast<unsigned>(month))) {
    return false;
  }
  *days = types::DaysFromCivil(year, static_cast<unsigned>(month), static_cast<unsigned>(day));
  return true;
}

/// `yyyy-MM-dd[T ]HH:mm:ss[.f{1,6}][Z]`; false where it is anything else.
bool PlainTimestamp(std::string_view text, std::int64_t* local, bool* utc) {
  std::int64_t days = 0;
  if (text.size() < 19 || !PlainDate(text, &days)) {
    return false;
  }
  const char* p = text.data();
  if ((p[10] != 'T' && p[10] != ' ') || p[13] != ':' || p[16] != ':') {
    return false;
  }
  const int hour = TwoDigits(p + 11);
  const int minute = TwoDigits(p + 14);
  const int second = TwoDigits(p + 17);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
    return false;
  }
  std::int64_t micros = 0;
  std::size_t at = 19;
  if (at < text.size() && p[at] == '.') {
    std::int64_t scale = 100000;
    const std::size_t first = ++at;
    while (at < text.size() && at - first < 6 && IsDigit(p[at])) {
      micros += (p[at] - '0') * scale;
      scale /= 10;
      ++at;
    }
    if (at == first) {
      return false;
    }
  }
  *utc = at + 1 == text.size() && p[at] == 'Z';
  if (at != text.size() && !*utc) {
    return false;
  }
  *local = days * kMicrosPerDay + ((hour * 60LL + minute) * 60 + second) * kMicrosPerSecond + micros;
  return true;
}

Error BadPattern(const std::string& pattern, const std::string& why) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER",
               "Unrecognized datetime pattern: " + pattern + ". " + why)
      .With("pattern", pattern);
}

}  // namespace

struct TimePattern::Fields {
  std::optional<std::int64_t> year;
  std::optional<std::int64_t> year_of_era;
  bool before_christ = false;
  std::optional<std::int64_t> month;
  std::optional<std::int64_t> day;
  std::optional<std::int64_t> day_of_year;
  std::optional<std::int64_t> weekday;
  std::optional<std::int64_t> hour;
  std::optional<std::int64_t> half_day_hour;
  std::optional<bool> afternoon;
  std::int64_t minute = 0;
  std::int64_t second = 0;
  std::int64_t nanos = 0;
  std::optional<std::int64_t> offset;
  std::shared_ptr<const types::TimeZone> zone;
};

Result<TimePattern> TimePattern::Compile(const std::string& pattern) {
  TimePattern result;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < pattern.size();) {
    const char c = pattern[i];
    Item item;
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      std::size_t j = i;
      while (j < pattern.size() && pattern[j] == c) {
        ++j;
      }
      item.letter = c;
      item.count = static_cast<int>(j - i);
      i = j;
      if (std::string_view("yuMLdDEahHkKmsSnXxZzVOQqG").find(c) == std::string_view::npos) {
        return BadPattern(pattern, std::string("Illegal pattern character found: ") + c + ".");
      }
      const int most = c == 'y' || c == 'u'   ? 6
                       : c == 'S' || c == 'n' ? 9
                       : c == 'M' || c == 'L' || c == 'E' || c == 'Q' || c == 'q' || c == 'z' || c == 'G' || c == 'O'
                           ? 4
                       : c == 'X' || c == 'x' || c == 'Z' ? 5
                       : c == 'a'                         ? 1
                       : c == 'D'                         ? 3
                                                          : 2;
      if (item.count > most || (c == 'V' && item.count != 2)) {
        return BadPattern(pattern, std::string("Too many or too few pattern letters: ") + c + ".");
      }
    } else if (c == '\'') {
      std::string text;
      std::size_t j = i + 1;
      bool closed = false;
      while (j < pattern.size()) {
        if (pattern[j] == '\'') {
          if (j + 1 < pattern.size() && pattern[j + 1] == '\'') {
            text.push_back('\'');
            j += 2;
            continue;
          }
          closed = true;
          ++j;
          break;
        }
        text.push_back(pattern[j++]);
      }
      if (!closed) {
        return BadPattern(pattern, "A quote is not closed.");
      }
      item.literal = text.empty() ? "'" : text;
      i = j;
    } else if (c == '[') {
      open.push_back(result.items_.size());
      item.letter = '[';
      ++i;
    } else if (c == ']') {
      if (open.empty()) {
        return BadPattern(pattern, "An optional section ends that did not begin.");
      }
      result.items_[open.back()].partner = result.items_.size();
      open.pop_back();
      item.letter = ']';
      ++i;
    } else if (c == '{' || c == '}' || c == '#') {
      return BadPattern(pattern, std::string("Illegal pattern character found: ") + c + ".");
    } else {
      item.literal = std::string(1, c);
      ++i;
    }
    result.items_.push_back(std::move(item));
  }
  for (auto it = open.rbegin(); it != open.rend(); ++it) {
    result.items_[*it].partner = result.items_.size();
    Item end;
    end.letter = ']';
    result.items_.push_back(end);
  }
  return result;
}

bool TimePattern::MatchItem(std::size_t index, std::string_view text, std::size_t& position, Fields& fields) const {
  const Item& item = items_[index];
  const bool adjacent = index + 1 < items_.size() && items_[index + 1].letter != 0 &&
                        std::string_view("yuMLdDhHkKmsSn").find(items_[index + 1].letter) != std::string_view::npos &&
                        items_[index + 1].letter != '[';
  std::int64_t value = 0;
  const auto number = [&](int least, int most) { return TakeNumber(text, position, least, most, &value); };
  const auto field = [&](int widest) { return item.count == 1 ? number(1, adjacent ? 1 : widest) : number(2, 2); };
  switch (item.letter) {
    case 'y':
    case 'u': {
      bool negative = false;
      if (position < text.size() && (text[position] == '-' || (text[position] == '+' && item.count >= 4))) {
        negative = text[position] == '-';
        ++position;
      }
      if (item.count == 2) {
        if (!number(2, 2)) {
          return false;
        }
        value += 2000;
      } else if (!number(item.count, adjacent || item.count > 4 ? item.count : (item.count == 4 ? 4 : 9))) {
        return false;
      }
      if (negative) {
        value = -value;
      }
      (item.letter == 'u' ? fields.year : fields.year_of_era) = value;
      return true;
    }
    case 'G':
      if (TakeText(text, position, "AD") || TakeText(text, position, "Anno Domini")) {
        return true;
      }
      fields.before_christ = TakeText(text, position, "BC") || TakeText(text, position, "Before Christ");
      return fields.before_christ;
    case 'Q':
    case 'q':
      if (item.count <= 2) {
        return number(item.count, item.count);
      }
      return false;
    case 'M':
    case 'L':
      if (item.count <= 2) {
        if (!field(2)) {
          return false;
        }
        fields.month = value;
        return true;
      }
      for (std::size_t m = 0; m < kMonths.size(); ++m) {
        std::string_view name = kMonths[m];
        if (item.count == 3) {
          name = name.substr(0, 3);
        }
        if (TakeText(text, position, name)) {
          fields.month = static_cast<std::int64_t>(m + 1);
          return true;
        }
      }
      return false;
    case 'd':
      if (!field(2)) {
        return false;
      }
      fields.day = value;
      return true;
    case 'D':
      if (!number(item.count, 3)) {
        return false;
      }
      fields.day_of_year = value;
      return true;
    case 'E':
      for (std::size_t d = 0; d < kDays.size(); ++d) {
        std::string_view name = kDays[d];
        if (item.count <= 3) {
          name = name.substr(0, 3);
        }
        if (TakeText(text, position, name)) {
          fields.weekday = static_cast<std::int64_t>(d);
          return true;
        }
      }
      return false;
    case 'a':
      if (TakeText(text, position, "AM")) {
        fields.afternoon = false;
        return true;
      }
      if (TakeText(text, position, "PM")) {
        fields.afternoon = true;
        return true;
      }
      return false;
    case 'H':
      if (!field(2) || value > 23) {
        return false;
      }
      fields.hour = value;
      return true;
    case 'k':
      if (!field(2) || value < 1 || value > 24) {
        return false;
      }
      fields.hour = value % 24;
      return true;
    case 'h':
      if (!field(2) || value < 1 || value > 12) {
        return false;
      }
      fields.half_day_hour = value % 12;
      return true;
    case 'K':
      if (!field(2) || value > 11) {
        return false;
      }
      fields.half_day_hour = value;
      return true;
    case 'm':
      if (!field(2) || value > 59) {
        return false;
      }
      fields.minute = value;
      return true;
    case 's':
      if (!field(2) || value > 59) {
        return false;
      }
      fields.second = value;
      return true;
    case 'S': {
      const std::size_t before = position;
      if (!number(1, item.count) || static_cast<int>(position - before) != item.count) {
        return false;
      }
      for (int i = item.count; i < 9; ++i) {
        value *= 10;
      }
      fields.nanos = value;
      return true;
    }
    case 'n':
      if (!number(1, 9)) {
        return false;
      }
      fields.nanos = value;
      return true;
    case 'X':
      if (TakeText(text, position, "Z")) {
        fields.offset = 0;
        return true;
      }
      [[fallthrough]];
    case 'x':
      if (!TakeOffset(text, position, item.count == 3 || item.count == 5, item.count != 1, &value)) {
        return false;
      }
      fields.offset = value;
      return true;
    case 'Z':
      if (item.count == 4) {
        if (!TakeText(text, position, "GMT")) {
          return false;
        }
        fields.offset = 0;
        if (position < text.size() && TakeOffset(text, position, true, false, &value)) {
          fields.offset = value;
        }
        return true;
      }
      if (item.count == 5 && TakeText(text, position, "Z")) {
        fields.offset = 0;
        return true;
      }
      if (!TakeOffset(text, position, item.count == 5, true, &value)) {
        return false;
      }
      fields.offset = value;
      return true;
    case 'O':
      if (!TakeText(text, position, "GMT")) {
        return false;
      }
      fields.offset = 0;
      if (position < text.size() && (text[position] == '+' || text[position] == '-')) {
        const bool negative = text[position++] == '-';
        std::int64_t minutes = 0;
        if (!number(1, 2)) {
          return false;
        }
        const std::int64_t hours = value;
        if (position < text.size() && text[position] == ':') {
          ++position;
          if (!number(2, 2)) {
            return false;
          }
          minutes = value;
        }
        fields.offset = (negative ? -1 : 1) * (hours * 3600 + minutes * 60);
      }
      return true;
    case 'V':
    case 'z': {
      std::size_t end = position;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                                   std::string_view("/_+-:").find(text[end]) != std::string_view::npos)) {
        ++end;
      }
      if (end == position) {
        return false;
      }
      auto zone = types::TimeZone::Find(text.substr(position, end - position));
      if (!zone.ok()) {
        return false;
      }
      fields.zone = std::move(zone).value();
      position = end;
      return true;
    }
    default:
      return TakeText(text, position, item.literal);
  }
}

bool TimePattern::Match(std::size_t from, std::size_t to, std::string_view text, std::size_t& position,
                        Fields& fields) const {
  for (std::size_t i = from; i < to; ++i) {
    if (items_[i].letter == '[') {
      Fields trial = fields;
      std::size_t at = position;
      if (Match(i + 1, items_[i].partner, text, at, trial)) {
        fields = trial;
        position = at;
      }
      i = items_[i].partner;
      continue;
    }
    if (items_[i].letter != ']' && !MatchItem(i, text, position, fields)) {
      return false;
    }
  }
  return true;
}

std::optional<TimePattern::Parsed> TimePattern::Parse(std::string_view text) const {
  Fields fields;
  std::size_t position = 0;
  if (!Match(0, items_.size(), text, position, fields) || position != text.size()) {
    return std::nullopt;
  }
  std::int64_t year = 1970;
  if (fields.year) {
    year = *fields.year;
  } else if (fields.year_of_era) {
    year = fields.before_christ ? 1 - *fields.year_of_era : *fields.year_of_era;
  }
  std::int64_t days = 0;
  if (fields.day_of_year) {
    if (*fields.day_of_year < 1 || *fields.day_of_year > (IsLeap(year) ? 366 : 365)) {
      return std::nullopt;
    }
    days = types::DaysFromCivil(year, 1, 1) + *fields.day_of_year - 1;
  } else {
    const std::int64_t month = fields.month.value_or(1);
    const std::int64_t day = fields.day.value_or(1);
    if (month < 1 || month > 12 || day < 1 || day > DaysInMonth(year, static_cast<unsigned>(month))) {
      return std::nullopt;
    }
    days = types::DaysFromCivil(year, static_cast<unsigned>(month), static_cast<unsigned>(day));
  }
  if (fields.weekday && ((days + 3) % 7 + 7) % 7 != *fields.weekday) {
    return std::nullopt;
  }
  std::int64_t hour = fields.hour.value_or(0);
  if (!fields.hour && fields.half_day_hour) {
    hour = *fields.half_day_hour + (fields.afternoon.value_or(false) ? 12 : 0);
  }
  Parsed parsed;
  parsed.local_micros = days * kMicrosPerDay + ((hour * 60 + fields.minute) * 60 + fields.second) * kMicrosPerSecond +
                        fields.nanos / 1000;
  parsed.offset_seconds = fields.offset;
  parsed.zone = fields.zone;
  return parsed;
}

void TimePattern::Format(std::int64_t local_micros, std::int64_t offset_seconds, const std::string& zone_id,
                         std::string& out) const {
  const std::int64_t days = FloorDiv(local_micros, kMicrosPerDay);
  const std::int64_t micros = local_micros - days * kMicrosPerDay;
  std::int64_t year = 0;
  unsigned month = 0;
  unsigned day = 0;
  types::CivilFromDays(days, &year, &month, &day);
  const std::int64_t seconds = micros / kMicrosPerSecond;
  const std::int64_t hour = seconds / 3600;
  const std::int64_t nanos = micros % kMicrosPerSecond * 1000;
  const auto weekday = static_cast<std::size_t>(((days + 3) % 7 + 7) % 7);
  const std::int64_t year_of_era = year > 0 ? year : 1 - year;
  for (const Item& item : items_) {
    switch (item.letter) {
      case 0:
        out += item.literal;
        break;
      case '[':
      case ']':
        break;
      case 'y':
      case 'u': {
        const std::int64_t shown = item.letter == 'y' ? year_of_era : year;
        if (item.count == 2) {
          AppendPadded(out, ((shown % 100) + 100) % 100, 2);
        } else {
          if (item.count >= 4 && shown > 9999) {
            out.push_back('+');
          }
          if (shown < 0) {
            out.push_back('-');
          }
          AppendPadded(out, shown < 0 ? -shown : shown, item.count);
        }
        break;
      }
      case 'G':
        out += year > 0 ? "AD" : "BC";
        break;
      case 'Q':
      case 'q':
        if (item.count <= 2) {
          AppendPadded(out, (month + 2) / 3, item.count);
        } else {
          out += "Q" + std::to_string((month + 2) / 3);
        }
        break;
      case 'M':
      case 'L':
        if (item.count <= 2) {
          AppendPadded(out, month, item.count);
        } else {
          const std::string_view name = kMonths[month - 1];
          out += item.count == 3 ? name.substr(0, 3) : name;
        }
        break;
      case 'd':
        AppendPadded(out, day, item.count);
        break;
      case 'D':
        AppendPadded(out, days - types::DaysFromCivil(year, 1, 1) + 1, item.count);
        break;
      case 'E': {
        const std::string_view name = kDays[weekday];
        out += item.count <= 3 ? name.substr(0, 3) : name;
        break;
      }
      case 'a':
        out += hour < 12 ? "AM" : "PM";
        break;
      case 'H':
        AppendPadded(out, hour, item.count);
        break;
      case 'k':
        AppendPadded(out, hour == 0 ? 24 : hour, item.count);
        break;
      case 'h':
        AppendPadded(out, hour % 12 == 0 ? 12 : hour % 12, item.count);
        break;
      case 'K':
        AppendPadded(out, hour % 12, item.count);
        break;
      case 'm':
        AppendPadded(out, seconds / 60 % 60, item.count);
        break;
      case 's':
        AppendPadded(out, seconds % 60, item.count);
        break;
      case 'S': {
        std::int64_t value = nanos;
        for (int i = item.count; i < 9; ++i) {
          value /= 10;
        }
        AppendPadded(out, value, item.count);
        break;
      }
      case 'n':
        AppendPadded(out, nanos, item.count);
        break;
      case 'X':
        if (offset_seconds == 0) {
          out.push_back('Z');
          break;
        }
        [[fallthrough]];
      case 'x':
        AppendOffset(out, offset_seconds, item.count == 3 || item.count == 5, item.count != 1, true, item.count >= 4);
        break;
      case 'Z':
        if (item.count == 4) {
          out += "GMT";
          if (offset_seconds != 0) {
            AppendOffset(out, offset_seconds, true, true, true, true);
          }
        } else if (item.count == 5 && offset_seconds == 0) {
          out.push_back('Z');
        } else {
          AppendOffset(out, offset_seconds, item.count == 5, true, true, item.count == 5);
        }
        break;
      case 'O':
        out += "GMT";
        if (offset_seconds != 0) {
          const std::int64_t magnitude = offset_seconds < 0 ? -offset_seconds : offset_seconds;
          out.push_back(offset_seconds < 0 ? '-' : '+');
          AppendPadded(out, magnitude / 3600, item.count == 4 ? 2 : 1);
          if (item.count == 4 || magnitude / 60 % 60 != 0) {
            out.push_back(':');
            AppendPadded(out, magnitude / 60 % 60, 2);
          }
        }
        break;
      case 'V':
      case 'z':
        out += zone_id;
        break;
      default:
        break;
    }
  }
}

Result<TimeText> TimeText::Make(const std::string& date_pattern, const std::string& timestamp_pattern,
                                const std::string& ntz_pattern, const std::string& zone) {
  TimeText text;
  text.zone_name_ = zone;
  FLEUVE_ASSIGN(text.zone_, types::TimeZone::Find(zone));
  text.is_utc_ = zone == "UTC" || zone == "Z" || zone == "Etc/UTC";
  if (!date_pattern.empty()) {
    FLEUVE_ASSIGN(text.date_, TimePattern::Compile(date_pattern));
  }
  if (!timestamp_pattern.empty()) {
    FLEUVE_ASSIGN(text.timestamp_, TimePattern::Compile(timestamp_pattern));
  }
  if (!ntz_pattern.empty()) {
    FLEUVE_ASSIGN(text.ntz_, TimePattern::Compile(ntz_pattern));
  }
  return text;
}

std::optional<std::int64_t> TimeText::ParseDate(std::string_view text) const {
  if (!date_) {
    std::int64_t days = 0;
    if (text.size() == 10 && PlainDate(text, &days)) {
      return days;
    }
    return types::ParseDate(text);
  }
  const auto parsed = date_->Parse(text);
  if (!parsed) {
    return std::nullopt;
  }
  return FloorDiv(parsed->local_micros, kMicrosPerDay);
}

std::optional<std::int64_t> TimeText::ParseTimestamp(std::string_view text) const {
  if (!timestamp_) {
    std::int64_t local = 0;
    bool utc = false;
    if (PlainTimestamp(text, &local, &utc)) {
      return utc || is_utc_ ? local : zone_->LocalToUtc(local);
    }
    return types::ParseTimestamp(text, zone_name_);
  }
  const auto parsed = timestamp_->Parse(text);
  if (!parsed) {
    return std::nullopt;
  }
  if (parsed->offset_seconds) {
    return parsed->local_micros - *parsed->offset_seconds * kMicrosPerSecond;
  }
  return (parsed->zone ? *parsed->zone : *zone_).LocalToUtc(parsed->local_micros);
}

std::optional<std::int64_t> TimeText::ParseTimestampNtz(std::string_view text) const {
  if (!ntz_) {
    return types::ParseTimestampNtz(text);
  }
  const auto parsed = ntz_->Parse(text);
  if (!parsed || parsed->offset_seconds || parsed->zone) {
    return std::nullopt;
  }
  return parsed->local_micros;
}

namespace {

/// `2000-01-01T00:00GMT+01:00`, as very old writers had it, without the GMT.
std::string WithoutGmt(std::string_view text) {
  std::string out(text);
  if (const auto at = out.find("GMT"); at != std::string::npos) {
    out.erase(at, 3);
  }
  return out;
}

}  // namespace

std::optional<std::int64_t> TimeText::ReadDate(std::string_view text, bool fallback) const {
  auto days = ParseDate(text);
  if (!days && fallback && date_) {
    days = types::ParseDate(WithoutGmt(text));
  }
  return days;
}

std::optional<std::int64_t> TimeText::ReadTimestamp(std::string_view text, bool fallback) const {
  auto micros = ParseTimestamp(text);
  if (!micros && fallback && timestamp_) {
    micros = types::ParseTimestamp(WithoutGmt(text), zone_name_);
  }
  return micros;
}

void TimeText::FormatDate(std::int64_t days, std::string& out) const {
  if (!date_) {
    out += types::DateToString(days);
    return;
  }
  date_->Format(days * kMicrosPerDay, 0, zone_name_, out);
}

void TimeText::FormatTimestamp(std::int64_t micros, std::string& out) const {
  const std::int64_t offset = zone_->OffsetSecondsAtUtc(micros);
  if (!timestamp_) {
    out += types::TimestampNtzToString(micros + offset * kMicrosPerSecond);
    return;
  }
  timestamp_->Format(micros + offset * kMicrosPerSecond, offset, zone_name_, out);
}

void TimeText::FormatTimestampNtz(std::int64_t micros, std::string& out) const {
  if (!ntz_) {
    out += types::TimestampNtzToString(micros);
    return;
  }
  ntz_->Format(micros, 0, zone_name_, out);
}

}  // namespace fleuve::engine
