#include <unicode/locid.h>
#include <unicode/timezone.h>
#include <unicode/unistr.h>

#include <cctype>

#include "base/bytes.h"
#include "engine/functions/calendar_internal.h"
#include "engine/functions/date_pattern_internal.h"

namespace fleuve::engine {

namespace {

constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                   "July",    "August",   "September", "October", "November", "December"};
constexpr const char* kDays[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
constexpr const char* kQuarters[] = {"1st quarter", "2nd quarter", "3rd quarter", "4th quarter"};

std::string Padded(std::int64_t value, int width) {
  std::string text = std::to_string(value < 0 ? -value : value);
  if (static_cast<int>(text.size()) < width) {
    text.insert(0, static_cast<std::size_t>(width) - text.size(), '0');
  }
  return (value < 0 ? "-" : "") + text;
}

/// +08:00 and its kin.
std::string Offset(std::int64_t seconds, const char* separator, bool minutes_always, bool with_seconds = false) {
  std::int64_t magnitude = seconds < 0 ? -seconds : seconds;
  std::string text = seconds < 0 ? "-" : "+";
  text += Padded(magnitude / 3600, 2);
  std::int64_t minutes = magnitude / 60 % 60;
  if (minutes_always || minutes != 0) {
    text += separator + Padded(minutes, 2);
  }
  if (with_seconds && magnitude % 60 != 0) {
    text += separator + Padded(magnitude % 60, 2);
  }
  return text;
}

std::string LocalizedOffset(std::int64_t seconds, bool full) {
  if (seconds == 0) {
    return "GMT";
  }
  std::int64_t magnitude = seconds < 0 ? -seconds : seconds;
  std::string text = seconds < 0 ? "GMT-" : "GMT+";
  text += full ? Padded(magnitude / 3600, 2) : std::to_string(magnitude / 3600);
  std::int64_t minutes = magnitude / 60 % 60;
  if (full || minutes != 0) {
    text += ":" + Padded(minutes, 2);
  }
  return text;
}

std::string ZoneName(std::int64_t micros, const types::TimeZone& zone, bool full) {
  const std::string& id = zone.id();
  if (id == "UTC" || id == "Etc/UTC") {
    return full ? "Coordinated Universal Time" : "UTC";
  }
  if (id == "Z" || id == "GMT" || (!id.empty() && (id[0] == '+' || id[0] == '-'))) {
    return id;
  }
  std::unique_ptr<icu::TimeZone> found(icu::TimeZone::createTimeZone(icu::UnicodeString::fromUTF8(id)));
  UErrorCode status = U_ZERO_ERROR;
  std::int32_t raw = 0;
  std::int32_t daylight = 0;
  found->getOffset(static_cast<double>(micros) / 1000, 0, raw, daylight, status);
  std::string text;
  for (const char* locale : {"en_US", "en_GB", "en_AU", "en_IN", "en_ZA"}) {
    icu::UnicodeString name;
    found->getDisplayName(daylight != 0, full ? icu::TimeZone::LONG : icu::TimeZone::SHORT, icu::Locale(locale), name);
    text.clear();
    name.toUTF8String(text);
    if (text.rfind("GMT", 0) != 0) {
      break;
    }
  }
  return text;
}

Error NotRecognized(std::string_view pattern) {
  return Error(ErrorKind::kInvalidArgument, "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION",
               "You may get a different result due to the upgrading to Spark >= 3.0: Fail to recognize '" +
                   std::string(pattern) + "' pattern in the DateTimeFormatter.")
      .With("pattern", "'" + std::string(pattern) + "'")
      .With("config", "\"spark.sql.legacy.timeParserPolicy\"")
      .Family(ErrorFamily::kSpark);
}

Error Invalid(std::string_view pattern) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_DATETIME_PATTERN.WITH_SUGGESTION",
               "Unrecognized datetime pattern: " + std::string(pattern) +
                   ". You can form a valid datetime pattern with the guide from the documentation.")
      .With("pattern", std::string(pattern))
      .Family(ErrorFamily::kRuntime);
}

Error WeekBased(char letter) {
  return Error(ErrorKind::kInvalidArgument, "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_WEEK_BASED_PATTERN",
               "You may get a different result due to the upgrading to Spark >= 3.0: All week-based patterns are "
               "unsupported since Spark 3.0, detected week-based character: " +
                   std::string(1, letter) + ". Please use the SQL function EXTRACT instead.")
      .With("c", std::string(1, letter))
      .Family(ErrorFamily::kSpark);
}

Error Illegal(std::string_view pattern, char letter) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER",
               "Unrecognized datetime pattern: " + std::string(pattern) +
                   ". Illegal pattern character found in "
                   "datetime pattern: " +
                   std::string(1, letter) + ". Please provide legal character.")
      .With("c", std::string(1, letter))
      .With("pattern", std::string(pattern))
      .Family(ErrorFamily::kRuntime);
}

}  // namespace

Result<std::shared_ptr<const DatePattern>> DatePattern::Compile(std::string_view pattern, bool parsing) {
  auto made = std::make_shared<DatePattern>();
  std::vector<std::size_t> open;
  auto literal = [&](char c) {
    if (made->items_.empty() || made->items_.back().letter != 0) {
      made->items_.emplace_back();
    }
    made->items_.back().text += c;
  };
  for (std::size_t i = 0; i < pattern.size();) {
    char c = pattern[i];
    if (c == '\'') {
      if (i + 1 < pattern.size() && pattern[i + 1] == '\'') {
        literal('\'');
        i += 2;
        continue;
      }
      ++i;
      bool closed = false;
      while (i < pattern.size()) {
        if (pattern[i] == '\'') {
          if (i + 1 < pattern.size() && pattern[i + 1] == '\'') {
            literal('\'');
            i += 2;
            continue;
          }
          closed = true;
          ++i;
          break;
        }
        literal(pattern[i++]);
      }
      if (!closed) {
        return Invalid(pattern);
      }
      continue;
    }
    if (c == '[') {
      open.push_back(made->items_.size());
      made->items_.push_back({'[', 0, "", 0});
      ++i;
      continue;
    }
    if (c == ']') {
      if (open.empty()) {
        return Invalid(pattern);
      }
      made->items_[open.back()].close = static_cast<int>(made->items_.size());
      open.pop_back();
      made->items_.push_back({']', 0, "", 0});
      ++i;
      continue;
    }
    if (c == '{' || c == '}' || c == '#') {
      return Invalid(pattern);
    }
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) {
      literal(c);
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < pattern.size() && pattern[end] == c) {
      ++end;
    }
    int count = static_cast<int>(end - i);
    static constexpr std::string_view kLegacy = "GyYMLwWDdFEuaHkKhmsSzZX";
    static constexpr std::string_view kKnown = "GyMLdDQqEFahKkHmsSVzOXxZ";
    if (c == 'e' || c == 'c') {
      return WeekBased(c);
    }
    if (std::string_view("ABnNp").find(c) != std::string_view::npos) {
      return Illegal(pattern, c);
    }
    if (kKnown.find(c) == std::string_view::npos) {
      return kLegacy.find(c) != std::string_view::npos ? NotRecognized(pattern) : Invalid(pattern);
    }
    if (parsing && (c == 'E' || c == 'F')) {
      return NotRecognized(pattern);
    }
    if (parsing && (c == 'Q' || c == 'q')) {
      return Invalid(pattern);
    }
    int most = c == 'y'                                                                 ? 6
               : c == 'D'                                                               ? 3
               : c == 'S'                                                               ? 9
               : (c == 'G' || c == 'M' || c == 'L' || c == 'E' || c == 'Q' || c == 'q') ? 4
               : c == 'a' || c == 'F'                                                   ? 1
               : c == 'V'                                                               ? 2
               : c == 'z'                                                               ? 4
               : c == 'O'                                                               ? 4
               : c == 'X' || c == 'x' || c == 'Z'                                       ? 5
                                                                                        : 2;
    if (count > most) {
      return kLegacy.find(c) != std::string_view::npos ? NotRecognized(pattern) : Invalid(pattern);
    }
    if ((c == 'V' && count != 2) || (c == 'O' && count != 1 && count != 4)) {
      return Invalid(pattern);
    }
    made->items_.push_back({c, count, "", 0});
    i = end;
  }
  while (!open.empty()) {
    made->items_[open.back()].close = static_cast<int>(made->items_.size());
    open.pop_back();
    made->items_.push_back({']', 0, "", 0});
  }
  return std::shared_ptr<const DatePattern>(std::move(made));
}

std::string DatePattern::Format(std::int64_t micros, const types::TimeZone& zone) const {
  return FormatItems(0, items_.size(), micros, zone);
}

std::string DatePattern::FormatItems(std::size_t from, std::size_t to, std::int64_t micros,
                                     const types::TimeZone& zone) const {
  std::int64_t offset = zone.OffsetSecondsAtUtc(micros);
  std::int64_t local = micros + offset * 1000000;
  std::int64_t day = FloorDiv(local, kDayMicros);
  std::int64_t within = local - day * kDayMicros;
  CivilDate date = CivilOf(day);
  int hour = static_cast<int>(within / 3600000000);
  int minute = static_cast<int>(within / 60000000 % 60);
  int second = static_cast<int>(within / 1000000 % 60);
  std::int64_t fraction = within % 1000000;
  std::string out;
  for (std::size_t i = from; i < to; ++i) {
    const Item& item = items_[i];
    switch (item.letter) {
      case 0:
        out += item.text;
        break;
      case '[':
      case ']':
        break;
      case 'G':
        out += item.count == 4 ? (date.year > 0 ? "Anno Domini" : "Before Christ") : (date.year > 0 ? "AD" : "BC");
        break;
      case 'y': {
        std::int64_t year = date.year > 0 ? date.year : 1 - date.year;
        if (item.count == 2) {
          out += Padded(year % 100, 2);
        } else {
          if (item.count >= 4 && year > 9999) {
            out += '+';
          }
          out += Padded(year, item.count);
        }
        break;
      }
      case 'M':
      case 'L':
        if (item.count <= 2) {
          out += Padded(date.month, item.count);
        } else if (item.count == 3) {
          out += std::string(kMonths[date.month - 1]).substr(0, 3);
        } else {
          out += kMonths[date.month - 1];
        }
        break;
      case 'd':
        out += Padded(date.day, item.count);
        break;
      case 'D':
        out += Padded(day - types::DaysFromCivil(date.year, 1, 1) + 1, item.count);
        break;
      case 'Q':
      case 'q': {
        unsigned quarter = (date.month - 1) / 3;
        if (item.count <= 2) {
          out += Padded(quarter + 1, item.count);
        } else if (item.count == 3) {
          out += "Q" + std::to_string(quarter + 1);
        } else {
          out += kQuarters[quarter];
        }
        break;
      }
      case 'E': {
        std::string name = kDays[IsoWeekday(day) - 1];
        out += item.count == 4 ? name : name.substr(0, 3);
        break;
      }
      case 'F':
        out += std::to_string((date.day - 1) % 7 + 1);
        break;
      case 'a':
        out += hour < 12 ? "AM" : "PM";
        break;
      case 'h':
        out += Padded(hour % 12 == 0 ? 12 : hour % 12, item.count);
        break;
      case 'K':
        out += Padded(hour % 12, item.count);
        break;
      case 'k':
        out += Padded(hour == 0 ? 24 : hour, item.count);
        break;
      case 'H':
        out += Padded(hour, item.count);
        break;
      case 'm':
        out += Padded(minute, item.count);
        break;
      case 's':
        out += Padded(second, item.count);
        break;
      case 'S': {
        std::string digits = Padded(fraction, 6) + "000";
        out += digits.substr(0, static_cast<std::size_t>(item.count));
        break;
      }
      case 'V':
        out += zone.id();
        break;
      case 'z':
        out += ZoneName(micros, zone, item.count == 4);
        break;
      case 'O':
        out += LocalizedOffset(offset, item.count == 4);
        break;
      case 'X':
      case 'x':
        if (offset == 0 && item.letter == 'X') {
          out += "Z";
        } else {
          out += Offset(offset, item.count == 3 || item.count == 5 ? ":" : "", item.count > 1, item.count > 3);
        }
        break;
      case 'Z':
        if (item.count <= 3) {
          out += Offset(offset, "", true);
        } else if (item.count == 4) {
          out += LocalizedOffset(offset, true);
        } else {
          out += offset == 0 ? "Z" : Offset(offset, ":", true, true);
        }
        break;
      default:
        break;
    }
  }
  return out;
}

struct DatePattern::Fields {
  std::optional<std::int64_t> year, month, day, day_of_year, hour, hour12, minute, second;
  std::optional<bool> afternoon;
  bool before_christ = false;
  std::int64_t fraction = 0;
  std::shared_ptr<const types::TimeZone> zone;
};

namespace {

bool Digit(char c) { return c >= '0' && c <= '9'; }

/// Between `least` and `most` digits.
bool TakeDigits(std::string_view text, std::size_t* at, int least, int most, std::int64_t* out) {
  std::int64_t value = 0;
  int count = 0;
  while (count < most && *at < text.size() && Digit(text[*at])) {
    value = value * 10 + (text[*at] - '0');
    ++*at;
    ++count;
  }
  *out = value;
  return count >= least;
}

bool TakeWord(std::string_view text, std::size_t* at, std::string_view word) {
  if (text.size() - *at < word.size() || !EqualsIgnoreAsciiCase(text.substr(*at, word.size()), word)) {
    return false;
  }
  *at += word.size();
  return true;
}

/// +HH[:mm[:ss]] and the like. \param form  1 +HH[mm], 2 +HHmm, 3 +HH:mm, 4 +HHmm[ss], 5 +HH:mm[:ss]
bool TakeOffset(std::string_view text, std::size_t* at, int form, std::int64_t* seconds) {
  if (*at >= text.size() || (text[*at] != '+' && text[*at] != '-')) {
    return false;
  }
  bool negative = text[*at] == '-';
  ++*at;
  bool colon = form == 3 || form == 5;
  std::int64_t hours = 0;
  std::int64_t minutes = 0;
  std::int64_t more = 0;
  if (!TakeDigits(text, at, 2, 2, &hours)) {
    return false;
  }
  std::size_t mark = *at;
  bool has_minutes = false;
  if (!colon || (*at < text.size() && text[*at] == ':')) {
    if (colon) {
      ++*at;
    }
    has_minutes = TakeDigits(text, at, 2, 2, &minutes);
    if (!has_minutes) {
      *at = mark;
      minutes = 0;
    }
  }
  if (!has_minutes && form != 1) {
    return false;
  }
  if (form >= 4) {
    mark = *at;
    if (!colon || (*at < text.size() && text[*at] == ':')) {
      if (colon) {
        ++*at;
      }
      if (!TakeDigits(text, at, 2, 2, &more)) {
        *at = mark;
        more = 0;
      }
    }
  }
  if (hours > 18 || minutes > 59 || more > 59) {
    return false;
  }
  *seconds = (hours * 3600 + minutes * 60 + more) * (negative ? -1 : 1);
  return true;
}

std::shared_ptr<const types::TimeZone> FixedZone(std::int64_t seconds) {
  auto zone = types::TimeZone::Find(seconds == 0 ? std::string("UTC") : Offset(seconds, ":", true, true));
  return zone.ok() ? *zone : nullptr;
}

}  // namespace

bool DatePattern::ParseItems(std::size_t from, std::size_t to, std::string_view text, std::size_t* at,
                             Fields* fields) const {
  for (std::size_t i = from; i < to; ++i) {
    const Item& item = items_[i];
    std::int64_t value = 0;
    // Digits that the fields right behind this one need: they lie next to each other without a separator.
    int reserved = 0;
    for (std::size_t k = i + 1; k < to; ++k) {
      char l = items_[k].letter;
      if ((l == 'M' || l == 'L') && items_[k].count <= 2                                       ? items_[k].count == 2
          : (l == 'd' || l == 'H' || l == 'h' || l == 'k' || l == 'K' || l == 'm' || l == 's') ? items_[k].count == 2
          : l == 'D'                                                                           ? items_[k].count == 3
                                                                                               : false) {
        reserved += items_[k].count;
      } else if (l == 'S') {
        reserved += items_[k].count;
        break;
      } else {
        break;
      }
    }
    auto number = [&](int count, int most) {
      if (count >= 2) {
        return TakeDigits(text, at, count, count, &value);
      }
      int available = 0;
      while (*at + static_cast<std::size_t>(available) < text.size() &&
             Digit(text[*at + static_cast<std::size_t>(available)])) {
        ++available;
      }
      int take = std::max(1, std::min(most, available - reserved));
      return TakeDigits(text, at, 1, take, &value);
    };
    switch (item.letter) {
      case 0:
        if (!TakeWord(text, at, item.text)) {
          return false;
        }
        break;
      case '[': {
        std::size_t mark = *at;
        Fields saved = *fields;
        if (!ParseItems(i + 1, static_cast<std::size_t>(item.close), text, at, fields)) {
          *at = mark;
          *fields = saved;
        }
        i = static_cast<std::size_t>(item.close);
        break;
      }
      case ']':
        break;
      case 'G':
        if (TakeWord(text, at, "AD") || TakeWord(text, at, "Anno Domini")) {
          break;
        }
        if (!TakeWord(text, at, "BC") && !TakeWord(text, at, "Before Christ")) {
          return false;
        }
        fields->before_christ = true;
        break;
      case 'y':
        if (item.count == 2) {
          if (!TakeDigits(text, at, 2, 2, &value)) {
            return false;
          }
          value += 2000;
        } else {
          int available = 0;
          bool sign = *at < text.size() && text[*at] == '+';
          if (sign) {
            ++*at;
          }
          while (*at + static_cast<std::size_t>(available) < text.size() &&
                 Digit(text[*at + static_cast<std::size_t>(available)])) {
            ++available;
          }
          int take = reserved > 0 ? available - reserved : available;
          if (!sign && item.count == 4) {
            take = std::min(take, 4);
            if (reserved == 0 && available > 4) {
              return false;
            }
          }
          if (take < item.count || !TakeDigits(text, at, item.count, std::min(take, 9), &value)) {
            return false;
          }
        }
        fields->year = value;
        break;
      case 'M':
      case 'L':
        if (item.count <= 2) {
          if (!number(item.count, 9)) {
            return false;
          }
          fields->month = value;
        } else {
          bool found = false;
          for (int m = 0; m < 12 && !found; ++m) {
            std::string name = kMonths[m];
            if (item.count == 3) {
              name = name.substr(0, 3);
            }
            if (TakeWord(text, at, name)) {
              fields->month = m + 1;
              found = true;
            }
          }
          if (!found) {
            return false;
          }
        }
        break;
      case 'd':
        if (!number(item.count, 9)) {
          return false;
        }
        fields->day = value;
        break;
      case 'D':
        if (item.count == 1 ? !number(1, 3) : !TakeDigits(text, at, item.count, 3, &value)) {
          return false;
        }
        fields->day_of_year = value;
        break;
      case 'a':
        if (TakeWord(text, at, "AM")) {
          fields->afternoon = false;
        } else if (TakeWord(text, at, "PM")) {
          fields->afternoon = true;
        } else {
          return false;
        }
        break;
      case 'h':
      case 'K':
        if (!number(item.count, 9) || value > 12 || (item.letter == 'h' && value < 1) ||
            (item.letter == 'K' && value > 11)) {
          return false;
        }
        fields->hour12 = value % 12;
        break;
      case 'k':
      case 'H':
        if (!number(item.count, 9) || value > (item.letter == 'k' ? 24 : 23) || (item.letter == 'k' && value < 1)) {
          return false;
        }
        fields->hour = value % 24;
        break;
      case 'm':
        if (!number(item.count, 9) || value > 59) {
          return false;
        }
        fields->minute = value;
        break;
      case 's':
        if (!number(item.count, 9) || value > 59) {
          return false;
        }
        fields->second = value;
        break;
      case 'S': {
        std::int64_t unit = 100000;
        int digits = 0;
        std::int64_t fraction = 0;
        while (digits < item.count && *at < text.size() && Digit(text[*at])) {
          fraction += (text[*at] - '0') * unit;
          unit /= 10;
          ++*at;
          ++digits;
        }
        if (digits == 0) {
          return false;
        }
        fields->fraction = fraction;
        break;
      }
      case 'V':
      case 'z': {
        std::size_t end = *at;
        while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '/' ||
                                     text[end] == '_' || text[end] == '+' || text[end] == '-' || text[end] == ':')) {
          ++end;
        }
        std::string name(text.substr(*at, end - *at));
        if (item.letter == 'z') {
          static constexpr std::pair<const char*, const char*> kShort[] = {
              {"PST", "America/Los_Angeles"}, {"PDT", "America/Los_Angeles"}, {"MST", "America/Denver"},
              {"MDT", "America/Denver"},      {"CST", "America/Chicago"},     {"CDT", "America/Chicago"},
              {"EST", "America/New_York"},    {"EDT", "America/New_York"},    {"CET", "Europe/Paris"},
              {"CEST", "Europe/Paris"},       {"JST", "Asia/Tokyo"},          {"BST", "Europe/London"}};
          for (const auto& [abbreviation, id] : kShort) {
            if (EqualsIgnoreAsciiCase(name, abbreviation)) {
              name = id;
            }
          }
        }
        auto zone = types::TimeZone::Find(name);
        if (name.empty() || !zone.ok()) {
          return false;
        }
        fields->zone = *zone;
        *at = end;
        break;
      }
      case 'O':
      case 'X':
      case 'x':
      case 'Z': {
        std::int64_t seconds = 0;
        if (item.letter == 'O' || (item.letter == 'Z' && item.count == 4)) {
          if (!TakeWord(text, at, "GMT")) {
            return false;
          }
          if (*at < text.size() && (text[*at] == '+' || text[*at] == '-')) {
            bool negative = text[*at] == '-';
            ++*at;
            std::int64_t hours = 0;
            std::int64_t minutes = 0;
            if (!TakeDigits(text, at, 1, 2, &hours)) {
              return false;
            }
            if (*at < text.size() && text[*at] == ':') {
              ++*at;
              if (!TakeDigits(text, at, 2, 2, &minutes)) {
                return false;
              }
            }
            seconds = (hours * 3600 + minutes * 60) * (negative ? -1 : 1);
          }
        } else if ((item.letter == 'X' || (item.letter == 'Z' && item.count == 5)) && *at < text.size() &&
                   (text[*at] == 'Z' || text[*at] == 'z')) {
          ++*at;
        } else if (!TakeOffset(text, at, item.letter == 'Z' ? (item.count == 5 ? 5 : 2) : item.count, &seconds)) {
          return false;
        }
        fields->zone = FixedZone(seconds);
        if (fields->zone == nullptr) {
          return false;
        }
        break;
      }
      default:
        return false;
    }
  }
  return true;
}

std::optional<DatePattern::Parsed> DatePattern::Parse(std::string_view text) const {
  Fields fields;
  std::size_t at = 0;
  if (!ParseItems(0, items_.size(), text, &at, &fields) || at != text.size()) {
    return std::nullopt;
  }
  std::int64_t year = fields.year.value_or(1970);
  if (fields.before_christ) {
    year = 1 - year;
  }
  if (fields.year && *fields.year < 1) {
    return std::nullopt;
  }
  std::int64_t days = 0;
  if (fields.day_of_year) {
    std::int64_t length = IsLeap(year) ? 366 : 365;
    if (*fields.day_of_year < 1 || *fields.day_of_year > length) {
      return std::nullopt;
    }
    days = types::DaysFromCivil(year, 1, 1) + *fields.day_of_year - 1;
  } else {
    std::int64_t month = fields.month.value_or(1);
    std::int64_t day = fields.day.value_or(1);
    if (month < 1 || month > 12 || day < 1 || day > DaysInMonth(year, static_cast<unsigned>(month))) {
      return std::nullopt;
    }
    days = types::DaysFromCivil(year, static_cast<unsigned>(month), static_cast<unsigned>(day));
  }
  std::int64_t hour = fields.hour.value_or(0);
  if (!fields.hour && fields.hour12) {
    hour = *fields.hour12 + (fields.afternoon.value_or(false) ? 12 : 0);
  }
  Parsed parsed;
  parsed.local = days * kDayMicros + hour * 3600000000 + fields.minute.value_or(0) * 60000000 +
                 fields.second.value_or(0) * 1000000 + fields.fraction;
  parsed.zone = fields.zone;
  return parsed;
}

}  // namespace fleuve::engine
