#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/bytes.h"
#include "base/json.h"
#include "engine/functions/calendar_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

using plan::CastMode;
using types::TypeKind;

std::shared_ptr<const types::TimeZone> ZoneOrThrow(std::string_view id) {
  auto zone = types::TimeZone::Find(id);
  if (!zone.ok()) {
    ThrowRowError(std::move(zone).error());
  }
  return *zone;
}

bool AddInterval(std::int64_t micros, std::int64_t months, std::int64_t days, std::int64_t more,
                 const types::TimeZone& zone, std::int64_t* out) {
  std::int64_t result = micros;
  if (months != 0 || days != 0) {
    std::int64_t local = zone.UtcToLocal(micros);
    std::int64_t day = FloorDiv(local, kDayMicros);
    std::int64_t rest = local - day * kDayMicros;
    if (months != 0) {
      day = AddMonths(day, months);
    }
    day += days;
    if (__builtin_mul_overflow(day, kDayMicros, &result) || __builtin_add_overflow(result, rest, &result)) {
      return false;
    }
    result = zone.LocalToUtc(result);
  }
  return !__builtin_add_overflow(result, more, out);
}

namespace {

using Zone = std::shared_ptr<const types::TimeZone>;

Error DateOverflow() {
  return Error(ErrorKind::kInvalidArgument, "DATETIME_OVERFLOW", "Datetime operation overflow.")
      .Family(ErrorFamily::kArithmetic);
}

Result<Zone> ZoneAt(const ScalarSite& site, std::size_t i) { return types::TimeZone::Find(site.Literal(i).text()); }

// ---- Fields ----

std::int32_t DateField(const std::string& field, std::int64_t days) {
  CivilDate date = CivilOf(days);
  if (field == "year") {
    return static_cast<std::int32_t>(date.year);
  }
  if (field == "quarter") {
    return static_cast<std::int32_t>((date.month - 1) / 3 + 1);
  }
  if (field == "month") {
    return static_cast<std::int32_t>(date.month);
  }
  if (field == "day") {
    return static_cast<std::int32_t>(date.day);
  }
  if (field == "dayofweek") {
    return IsoWeekday(days) % 7 + 1;
  }
  if (field == "dayofweek_iso") {
    return IsoWeekday(days);
  }
  if (field == "weekday") {
    return IsoWeekday(days) - 1;
  }
  if (field == "dayofyear") {
    return static_cast<std::int32_t>(days - types::DaysFromCivil(date.year, 1, 1)) + 1;
  }
  std::int64_t year = 0;
  int week = 0;
  IsoWeek(days, &year, &week);
  return field == "week" ? week : static_cast<std::int32_t>(year);
}

Result<Kernel> MakeDateField(const ScalarSite& site) {
  std::string field = site.Literal(1).text();
  return MapRows<std::int32_t, std::int32_t>([field](std::int32_t days) { return DateField(field, days); });
}

/// time_field(time, field, zone)
Result<Kernel> MakeTimeField(const ScalarSite& site) {
  std::string field = site.Literal(1).text();
  FLEUVE_ASSIGN(Zone zone, ZoneAt(site, 2));
  bool ntz = site.ArgumentType(0).Is(TypeKind::kTimestampNtz);
  auto within = [zone, ntz](std::int64_t micros) {
    return FloorMod(ntz ? micros : zone->UtcToLocal(micros), kDayMicros);
  };
  if (field == "seconds") {
    // decimal(8,6)
    return MapRows<std::int32_t, std::int64_t>(
        [within](std::int64_t micros) { return static_cast<std::int32_t>(within(micros) % 60000000); });
  }
  std::int64_t unit = field == "hour" ? 3600000000 : field == "minute" ? 60000000 : 1000000;
  std::int64_t limit = field == "hour" ? 24 : 60;
  return MapRows<std::int32_t, std::int64_t>(
      [within, unit, limit](std::int64_t micros) { return static_cast<std::int32_t>(within(micros) / unit % limit); });
}

Result<Kernel> MakeDayName(const ScalarSite&) {
  return MapRows<Str, std::int32_t>([](std::int32_t days) {
    static constexpr const char* kNames[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    return Str(kNames[IsoWeekday(days) - 1]);
  });
}
Result<Kernel> MakeMonthName(const ScalarSite&) {
  return MapRows<Str, std::int32_t>([](std::int32_t days) {
    static constexpr const char* kNames[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                             "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    return Str(kNames[CivilOf(days).month - 1]);
  });
}

// ---- Days ----

template <int kSign>
Result<Kernel> MakeDateAdd(const ScalarSite& site) {
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  return MapRows<std::int32_t, std::int32_t, std::int32_t>(
      [is_try](std::int32_t date, std::int32_t days) -> std::optional<std::int32_t> {
        std::int32_t out = 0;
        bool overflow = kSign > 0 ? __builtin_add_overflow(date, days, &out) : __builtin_sub_overflow(date, days, &out);
        if (overflow) {
          if (is_try) {
            return std::nullopt;
          }
          ThrowRowError(DateOverflow());
        }
        return out;
      });
}

Result<Kernel> MakeDateDiff(const ScalarSite&) {
  return MapRows<std::int32_t, std::int32_t, std::int32_t>(
      [](std::int32_t end, std::int32_t start) { return static_cast<std::int32_t>(std::int64_t{end} - start); });
}

Result<Kernel> MakeDateMinusDate(const ScalarSite&) {
  return MapRows<std::int64_t, std::int32_t, std::int32_t>(
      [](std::int32_t a, std::int32_t b) { return (std::int64_t{a} - b) * kDayMicros; });
}

Result<Kernel> MakeAddMonths(const ScalarSite&) {
  return MapRows<std::int32_t, std::int32_t, std::int32_t>([](std::int32_t date, std::int32_t months) {
    std::int64_t out = AddMonths(date, months);
    if (out > std::numeric_limits<std::int32_t>::max() || out < std::numeric_limits<std::int32_t>::min()) {
      ThrowRowError(DateOverflow());
    }
    return static_cast<std::int32_t>(out);
  });
}

Result<Kernel> MakeLastDay(const ScalarSite&) {
  return MapRows<std::int32_t, std::int32_t>([](std::int32_t days) {
    CivilDate date = CivilOf(days);
    return static_cast<std::int32_t>(days - static_cast<std::int32_t>(date.day) +
                                     static_cast<std::int32_t>(DaysInMonth(date.year, date.month)));
  });
}

Result<Kernel> MakeNextDay(const ScalarSite& site) {
  bool ansi = ModeOf(site.expr) == CastMode::kAnsi;
  return MapRows<std::int32_t, std::int32_t, Str>([ansi](std::int32_t date, Str name) -> std::optional<std::int32_t> {
    static const std::unordered_map<std::string, int> kDays = {
        {"MO", 1}, {"MON", 1}, {"MONDAY", 1},    {"TU", 2}, {"TUE", 2}, {"TUESDAY", 2},
        {"WE", 3}, {"WED", 3}, {"WEDNESDAY", 3}, {"TH", 4}, {"THU", 4}, {"THURSDAY", 4},
        {"FR", 5}, {"FRI", 5}, {"FRIDAY", 5},    {"SA", 6}, {"SAT", 6}, {"SATURDAY", 6},
        {"SU", 7}, {"SUN", 7}, {"SUNDAY", 7}};
    auto found = kDays.find(AsciiUpper(name));
    if (found == kDays.end()) {
      if (ansi) {
        ThrowRowError(Error(ErrorKind::kInvalidArgument, "ILLEGAL_DAY_OF_WEEK",
                            "Illegal input for day of week: " + std::string(name) + ".")
                          .With("string", std::string(name))
                          .Family(ErrorFamily::kIllegalArgument));
      }
      return std::nullopt;
    }
    std::int64_t ahead = FloorMod(found->second - IsoWeekday(date) - 1, 7) + 1;
    return static_cast<std::int32_t>(date + ahead);
  });
}

// ---- Truncation ----

enum class Unit { kNone, kYear, kQuarter, kMonth, kWeek, kDay, kHour, kMinute, kSecond, kMillisecond, kMicrosecond };

Unit UnitOf(Str name) {
  static const std::unordered_map<std::string, Unit> kUnits = {{"YEAR", Unit::kYear},
                                                               {"YYYY", Unit::kYear},
                                                               {"YY", Unit::kYear},
                                                               {"QUARTER", Unit::kQuarter},
                                                               {"MONTH", Unit::kMonth},
                                                               {"MON", Unit::kMonth},
                                                               {"MM", Unit::kMonth},
                                                               {"WEEK", Unit::kWeek},
                                                               {"DAY", Unit::kDay},
                                                               {"DD", Unit::kDay},
                                                               {"HOUR", Unit::kHour},
                                                               {"MINUTE", Unit::kMinute},
                                                               {"SECOND", Unit::kSecond},
                                                               {"MILLISECOND", Unit::kMillisecond},
                                                               {"MICROSECOND", Unit::kMicrosecond}};
  auto found = kUnits.find(AsciiUpper(name));
  return found == kUnits.end() ? Unit::kNone : found->second;
}

std::int64_t TruncateDays(std::int64_t days, Unit unit) {
  CivilDate date = CivilOf(days);
  switch (unit) {
    case Unit::kYear:
      return types::DaysFromCivil(date.year, 1, 1);
    case Unit::kQuarter:
      return types::DaysFromCivil(date.year, (date.month - 1) / 3 * 3 + 1, 1);
    case Unit::kMonth:
      return types::DaysFromCivil(date.year, date.month, 1);
    case Unit::kWeek:
      return days - IsoWeekday(days) + 1;
    default:
      return days;
  }
}

Result<Kernel> MakeTrunc(const ScalarSite&) {
  return MapRows<std::int32_t, std::int32_t, Str>([](std::int32_t days, Str name) -> std::optional<std::int32_t> {
    Unit unit = UnitOf(name);
    if (unit == Unit::kNone || unit >= Unit::kDay) {
      return std::nullopt;
    }
    return static_cast<std::int32_t>(TruncateDays(days, unit));
  });
}

/// date_trunc(unit, time, zone)
Result<Kernel> MakeDateTrunc(const ScalarSite& site) {
  FLEUVE_ASSIGN(Zone zone, ZoneAt(site, 2));
  return MapRows<std::int64_t, Str, std::int64_t>([zone](Str name, std::int64_t micros) -> std::optional<std::int64_t> {
    Unit unit = UnitOf(name);
    switch (unit) {
      case Unit::kNone:
        return std::nullopt;
      case Unit::kMicrosecond:
        return micros;
      case Unit::kMillisecond:
        return FloorDiv(micros, 1000) * 1000;
      case Unit::kSecond:
        return FloorDiv(micros, 1000000) * 1000000;
      case Unit::kMinute:
      case Unit::kHour: {
        // Whole seconds of the offset matter; the offset of the instant stays.
        std::int64_t step = unit == Unit::kMinute ? 60000000 : 3600000000;
        std::int64_t offset = zone->OffsetSecondsAtUtc(micros) * 1000000;
        return FloorDiv(micros + offset, step) * step - offset;
      }
      default:
        return zone->LocalToUtc(TruncateDays(FloorDiv(zone->UtcToLocal(micros), kDayMicros), unit) * kDayMicros);
    }
  });
}

// ---- Instants ----

Result<Kernel> MakeUnixTimestamp(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t>([](std::int64_t micros) { return micros / 1000000; });
}
template <std::int64_t kUnit>
Result<Kernel> MakeUnixPart(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t>([](std::int64_t micros) { return FloorDiv(micros, kUnit); });
}

std::int64_t Scaled(std::int64_t value, std::int64_t factor) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(value, factor, &out)) {
    ThrowRowError(
        Error(ErrorKind::kInvalidArgument, "ARITHMETIC_OVERFLOW",
              "long overflow. If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error."));
  }
  return out;
}

Result<Kernel> MakeTimestampSeconds(const ScalarSite& site) {
  const types::DataType& type = site.ArgumentType(0);
  switch (type.kind()) {
    case TypeKind::kByte:
      return MapRows<std::int64_t, std::int8_t>([](std::int8_t v) { return Scaled(v, 1000000); });
    case TypeKind::kShort:
      return MapRows<std::int64_t, std::int16_t>([](std::int16_t v) { return Scaled(v, 1000000); });
    case TypeKind::kInt:
      return MapRows<std::int64_t, std::int32_t>([](std::int32_t v) { return Scaled(v, 1000000); });
    case TypeKind::kLong:
      return MapRows<std::int64_t, std::int64_t>([](std::int64_t v) { return Scaled(v, 1000000); });
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      auto convert = [](double v) -> std::optional<std::int64_t> {
        if (!std::isfinite(v)) {
          return std::nullopt;
        }
        return static_cast<std::int64_t>(v * 1e6);
      };
      if (type.Is(TypeKind::kFloat)) {
        return MapRows<std::int64_t, float>([convert](float v) { return convert(v); });
      }
      return MapRows<std::int64_t, double>(convert);
    }
    case TypeKind::kDecimal: {
      int scale = type.scale();
      return WithDecimalCarrier(type.precision(), [scale](auto zero) -> Result<Kernel> {
        using T = decltype(zero);
        return MapRows<std::int64_t, T>([scale](T v) -> std::int64_t {
          Int128 value = v;
          Int128 micros = 0;
          bool lost = false;
          if (scale > 6) {
            lost = value % PowerOfTen(scale - 6) != 0;
            micros = value / PowerOfTen(scale - 6);
          } else {
            lost = __builtin_mul_overflow(value, PowerOfTen(6 - scale), &micros);
          }
          if (lost || micros > std::numeric_limits<std::int64_t>::max() ||
              micros < std::numeric_limits<std::int64_t>::min()) {
            ThrowRowError(
                Error(ErrorKind::kInvalidArgument, "ARITHMETIC_OVERFLOW",
                      "Rounding necessary. If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass "
                      "this error."));
          }
          return static_cast<std::int64_t>(micros);
        });
      });
    }
    default:
      return Error::Internal("timestamp_seconds of " + type.Sql());
  }
}

Result<Kernel> MakeTimestampMillis(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t>([](std::int64_t v) { return Scaled(v, 1000); });
}
Result<Kernel> MakeSameLong(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t>([](std::int64_t v) { return v; });
}
Result<Kernel> MakeSameInt(const ScalarSite&) {
  return MapRows<std::int32_t, std::int32_t>([](std::int32_t v) { return v; });
}

Result<Kernel> MakeFromUtc(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t, Str>(
      [](std::int64_t micros, Str zone) { return ZoneOrThrow(zone)->UtcToLocal(micros); });
}
Result<Kernel> MakeToUtc(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t, Str>(
      [](std::int64_t micros, Str zone) { return ZoneOrThrow(zone)->LocalToUtc(micros); });
}
Result<Kernel> MakeConvertTimezone(const ScalarSite&) {
  return MapRows<std::int64_t, Str, Str, std::int64_t>([](Str from, Str to, std::int64_t local) {
    return ZoneOrThrow(to)->UtcToLocal(ZoneOrThrow(from)->LocalToUtc(local));
  });
}

/// months_between(a, b, round, zone)
Result<Kernel> MakeMonthsBetween(const ScalarSite& site) {
  FLEUVE_ASSIGN(Zone zone, ZoneAt(site, 3));
  return MapRows<double, std::int64_t, std::int64_t, bool>([zone](std::int64_t a, std::int64_t b, bool round) {
    std::int64_t x = zone->UtcToLocal(a);
    std::int64_t y = zone->UtcToLocal(b);
    std::int64_t day_x = FloorDiv(x, kDayMicros);
    std::int64_t day_y = FloorDiv(y, kDayMicros);
    CivilDate p = CivilOf(day_x);
    CivilDate q = CivilOf(day_y);
    double months = static_cast<double>((p.year - q.year) * 12 + static_cast<std::int64_t>(p.month) -
                                        static_cast<std::int64_t>(q.month));
    bool last_p = p.day == DaysInMonth(p.year, p.month);
    bool last_q = q.day == DaysInMonth(q.year, q.month);
    if (p.day == q.day || (last_p && last_q)) {
      return months;
    }
    // Seconds within the month, 31 days to a month.
    std::int64_t seconds_x = FloorDiv(x - day_x * kDayMicros, 1000000);
    std::int64_t seconds_y = FloorDiv(y - day_y * kDayMicros, 1000000);
    std::int64_t difference =
        (static_cast<std::int64_t>(p.day) - static_cast<std::int64_t>(q.day)) * 86400 + seconds_x - seconds_y;
    double out = months + static_cast<double>(difference) / (31.0 * 86400);
    if (round) {
      out = std::round(out * 1e8) / 1e8;
    }
    return out;
  });
}

// ---- Construction ----

Error OutOfBounds(const std::string& message) {
  return Error(ErrorKind::kInvalidArgument, "DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION",
               message + ". If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error.")
      .With("rangeMessage", message)
      .With("ansiConfig", "\"spark.sql.ansi.enabled\"")
      .Family(ErrorFamily::kDateTime);
}

std::optional<std::string> CheckDate(std::int64_t year, std::int64_t month, std::int64_t day) {
  if (month < 1 || month > 12) {
    return "Invalid value for MonthOfYear (valid values 1 - 12): " + std::to_string(month);
  }
  if (day < 1 || day > 31) {
    return "Invalid value for DayOfMonth (valid values 1 - 28/31): " + std::to_string(day);
  }
  if (day > DaysInMonth(year, static_cast<unsigned>(month))) {
    static constexpr const char* kNames[] = {"JANUARY", "FEBRUARY", "MARCH",     "APRIL",   "MAY",      "JUNE",
                                             "JULY",    "AUGUST",   "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"};
    if (day == 29) {
      return "Invalid date 'February 29' as '" + std::to_string(year) + "' is not a leap year";
    }
    return "Invalid date '" + std::string(kNames[month - 1]) + " " + std::to_string(day) + "'";
  }
  return std::nullopt;
}

Result<Kernel> MakeMakeDate(const ScalarSite& site) {
  bool ansi = ModeOf(site.expr) == CastMode::kAnsi;
  return MapRows<std::int32_t, std::int32_t, std::int32_t, std::int32_t>(
      [ansi](std::int32_t year, std::int32_t month, std::int32_t day) -> std::optional<std::int32_t> {
        if (auto wrong = CheckDate(year, month, day)) {
          if (ansi) {
            ThrowRowError(OutOfBounds(*wrong));
          }
          return std::nullopt;
        }
        return static_cast<std::int32_t>(
            types::DaysFromCivil(year, static_cast<unsigned>(month), static_cast<unsigned>(day)));
      });
}

/// make_timestamp(year, month, day, hour, minute, seconds decimal(16,6), zone)
Result<Kernel> MakeMakeTimestamp(const ScalarSite& site) {
  bool quiet = ModeOf(site.expr) == CastMode::kTry;
  bool ntz = site.expr.type.Is(TypeKind::kTimestampNtz);
  return MapRows<std::int64_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int64_t, Str>(
      [quiet, ntz](std::int32_t year, std::int32_t month, std::int32_t day, std::int32_t hour, std::int32_t minute,
                   std::int64_t seconds, Str zone) -> std::optional<std::int64_t> {
        std::optional<std::string> wrong = CheckDate(year, month, day);
        if (!wrong && (hour < 0 || hour > 23)) {
          wrong = "Invalid value for HourOfDay (valid values 0 - 23): " + std::to_string(hour);
        }
        if (!wrong && (minute < 0 || minute > 59)) {
          wrong = "Invalid value for MinuteOfHour (valid values 0 - 59): " + std::to_string(minute);
        }
        if (!wrong && (seconds < 0 || seconds > 60000000)) {
          if (seconds / 1000000 == 60) {
            if (quiet) {
              return std::nullopt;
            }
            ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_FRACTION_OF_SECOND",
                                "Valid range for seconds is [0, 60] (inclusive), but the provided value is " +
                                    types::DecimalToString(seconds, 6) +
                                    ". To avoid this error, use `try_make_timestamp`, which returns NULL on error.")
                              .Family(ErrorFamily::kDateTime));
          }
          wrong = "Invalid value for SecondOfMinute (valid values 0 - 59): " + std::to_string(seconds / 1000000);
        }
        if (wrong) {
          if (quiet) {
            return std::nullopt;
          }
          ThrowRowError(OutOfBounds(*wrong));
        }
        std::int64_t days = types::DaysFromCivil(year, static_cast<unsigned>(month), static_cast<unsigned>(day));
        std::int64_t local =
            days * kDayMicros + hour * std::int64_t{3600000000} + minute * std::int64_t{60000000} + seconds;
        return ntz ? local : ZoneOrThrow(zone)->LocalToUtc(local);
      });
}

// ---- Units ----

std::int64_t WholeMonths(std::int64_t start, std::int64_t end) {
  std::int64_t day_a = FloorDiv(start, kDayMicros);
  std::int64_t day_b = FloorDiv(end, kDayMicros);
  CivilDate a = CivilOf(day_a);
  CivilDate b = CivilOf(day_b);
  std::int64_t months =
      (b.year - a.year) * 12 + static_cast<std::int64_t>(b.month) - static_cast<std::int64_t>(a.month);
  std::int64_t rest_a = static_cast<std::int64_t>(a.day) * kDayMicros + (start - day_a * kDayMicros);
  std::int64_t rest_b = static_cast<std::int64_t>(b.day) * kDayMicros + (end - day_b * kDayMicros);
  if (months > 0 && rest_b < rest_a) {
    --months;
  } else if (months < 0 && rest_b > rest_a) {
    ++months;
  }
  return months;
}

/// timestamp_diff(start, end, unit, zone)
Result<Kernel> MakeTimestampDiff(const ScalarSite& site) {
  std::string unit = site.Literal(2).text();
  FLEUVE_ASSIGN(Zone zone, ZoneAt(site, 3));
  bool ntz = site.ArgumentType(0).Is(TypeKind::kTimestampNtz);
  return MapRows<std::int64_t, std::int64_t, std::int64_t>([unit, zone, ntz](std::int64_t start, std::int64_t end) {
    static const std::unordered_map<std::string, std::int64_t> kMicros = {
        {"MICROSECOND", 1}, {"MILLISECOND", 1000}, {"SECOND", 1000000}, {"MINUTE", 60000000}, {"HOUR", 3600000000}};
    // All units count on the clock of the zone: the day on which it is put forward has 24 hours.
    std::int64_t a = ntz ? start : zone->UtcToLocal(start);
    std::int64_t b = ntz ? end : zone->UtcToLocal(end);
    if (auto found = kMicros.find(unit); found != kMicros.end()) {
      return (b - a) / found->second;
    }
    if (unit == "DAY") {
      return (b - a) / kDayMicros;
    }
    if (unit == "WEEK") {
      return (b - a) / (7 * kDayMicros);
    }
    std::int64_t months = WholeMonths(a, b);
    return unit == "MONTH" ? months : unit == "QUARTER" ? months / 3 : months / 12;
  });
}

/// timestamp_add(time, quantity, unit, zone)
Result<Kernel> MakeTimestampAdd(const ScalarSite& site) {
  std::string unit = site.Literal(2).text();
  FLEUVE_ASSIGN(Zone zone,
                site.ArgumentType(0).Is(TypeKind::kTimestampNtz) ? types::TimeZone::Find("UTC") : ZoneAt(site, 3));
  std::int64_t months = unit == "MONTH" ? 1 : unit == "QUARTER" ? 3 : unit == "YEAR" ? 12 : 0;
  std::int64_t days = unit == "DAY" ? 1 : unit == "WEEK" ? 7 : 0;
  std::int64_t micros = unit == "MICROSECOND"   ? 1
                        : unit == "MILLISECOND" ? 1000
                        : unit == "SECOND"      ? 1000000
                        : unit == "MINUTE"      ? 60000000
                        : unit == "HOUR"        ? 3600000000
                                                : 0;
  return MapRows<std::int64_t, std::int64_t, std::int64_t>([=](std::int64_t time, std::int64_t quantity) {
    std::int64_t m = 0;
    std::int64_t d = 0;
    std::int64_t u = 0;
    std::int64_t out = 0;
    if (__builtin_mul_overflow(months, quantity, &m) || __builtin_mul_overflow(days, quantity, &d) ||
        __builtin_mul_overflow(micros, quantity, &u) || m > 100000000 || m < -100000000 ||
        !AddInterval(time, m, d, u, *zone, &out)) {
      ThrowRowError(DateOverflow());
    }
    return out;
  });
}

// ---- Windows ----

/// window(time, width, slide, start, index)
Result<Kernel> MakeWindow(const ScalarSite& site) {
  std::int64_t width = site.Literal(1).integer();
  std::int64_t slide = site.Literal(2).integer();
  std::int64_t start = site.Literal(3).integer();
  if (site.IsLiteral(4) && site.Literal(4).integer() < 0) {
    return Error::Unsupported("window() in this place");
  }
  return Kernel([=](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column time(args.data[0], args.size());
    Column indexes(args.data[4], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto& parts = duckdb::StructVector::GetEntries(result);
    auto* from = duckdb::FlatVector::GetData<std::int64_t>(*parts[0]);
    auto* to = duckdb::FlatVector::GetData<std::int64_t>(*parts[1]);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (time.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      std::int64_t at = time.Get<std::int64_t>(row);
      std::int64_t last = at - FloorMod(at - start, slide) - indexes.Get<std::int64_t>(row) * slide;
      if (at >= last + width) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      from[row] = last;
      to[row] = last + width;
    }
  });
}

/// session_window(time, gap, zone): from the time to the time and the gap; NULL where the gap is not positive.
Result<Kernel> MakeSessionWindow(const ScalarSite& site) {
  bool calendar = site.ArgumentType(1).Is(TypeKind::kCalendarInterval);
  FLEUVE_ASSIGN(Zone zone,
                site.ArgumentType(0).Is(TypeKind::kTimestampNtz) ? types::TimeZone::Find("UTC") : ZoneAt(site, 2));
  return Kernel([calendar, zone](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column time(args.data[0], args.size());
    Column gap(args.data[1], args.size());
    duckdb::RecursiveUnifiedVectorFormat parts;
    duckdb::Vector::RecursiveToUnifiedFormat(args.data[1], args.size(), parts);
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto& entries = duckdb::StructVector::GetEntries(result);
    auto* from = duckdb::FlatVector::GetData<std::int64_t>(*entries[0]);
    auto* to = duckdb::FlatVector::GetData<std::int64_t>(*entries[1]);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (time.IsNull(row) || gap.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      std::int64_t start = time.Get<std::int64_t>(row);
      std::int64_t end = 0;
      bool fine = true;
      if (calendar) {
        duckdb::idx_t index = gap.Index(row);
        auto part = [&](std::size_t i, auto zero) -> std::int64_t {
          const auto& child = parts.children[i].unified;
          return duckdb::UnifiedVectorFormat::GetData<decltype(zero)>(child)[child.sel->get_index(index)];
        };
        fine =
            AddInterval(start, part(0, std::int32_t{}), part(1, std::int32_t{}), part(2, std::int64_t{}), *zone, &end);
      } else {
        fine = !__builtin_add_overflow(start, gap.Get<std::int64_t>(row), &end);
      }
      if (!fine || end <= start) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      from[row] = start;
      to[row] = end;
    }
  });
}

Result<Kernel> MakeWindowTime(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t>([](std::int64_t end) { return end - 1; });
}

}  // namespace

const ScalarTable& DateKernels() {
  static const ScalarTable table = {
      {"spark_date_field", Nulls::kPropagate, MakeDateField},
      {"spark_time_field", Nulls::kPropagate, MakeTimeField},
      {"spark_dayname", Nulls::kPropagate, MakeDayName},
      {"spark_monthname", Nulls::kPropagate, MakeMonthName},
      {"spark_date_add", Nulls::kPropagate, MakeDateAdd<1>},
      {"spark_date_sub", Nulls::kPropagate, MakeDateAdd<-1>},
      {"spark_datediff", Nulls::kPropagate, MakeDateDiff},
      {"spark_date_minus_date", Nulls::kPropagate, MakeDateMinusDate},
      {"spark_add_months", Nulls::kPropagate, MakeAddMonths},
      {"spark_last_day", Nulls::kPropagate, MakeLastDay},
      {"spark_next_day", Nulls::kPropagate, MakeNextDay},
      {"spark_trunc", Nulls::kPropagate, MakeTrunc},
      {"spark_date_trunc", Nulls::kPropagate, MakeDateTrunc},
      {"spark_unix_timestamp", Nulls::kPropagate, MakeUnixTimestamp},
      {"spark_unix_seconds", Nulls::kPropagate, MakeUnixPart<1000000>},
      {"spark_unix_millis", Nulls::kPropagate, MakeUnixPart<1000>},
      {"spark_unix_micros", Nulls::kPropagate, MakeSameLong},
      {"spark_timestamp_seconds", Nulls::kPropagate, MakeTimestampSeconds},
      {"spark_timestamp_millis", Nulls::kPropagate, MakeTimestampMillis},
      {"spark_timestamp_micros", Nulls::kPropagate, MakeSameLong},
      {"spark_unix_date", Nulls::kPropagate, MakeSameInt},
      {"spark_date_from_unix_date", Nulls::kPropagate, MakeSameInt},
      {"spark_from_utc_timestamp", Nulls::kPropagate, MakeFromUtc},
      {"spark_to_utc_timestamp", Nulls::kPropagate, MakeToUtc},
      {"spark_convert_timezone", Nulls::kPropagate, MakeConvertTimezone},
      {"spark_months_between", Nulls::kPropagate, MakeMonthsBetween},
      {"spark_make_date", Nulls::kPropagate, MakeMakeDate},
      {"spark_make_timestamp", Nulls::kPropagate, MakeMakeTimestamp},
      {"spark_timestamp_diff", Nulls::kPropagate, MakeTimestampDiff},
      {"spark_timestamp_add", Nulls::kPropagate, MakeTimestampAdd},
      {"spark_window", Nulls::kOwn, MakeWindow},
      {"spark_session_window", Nulls::kOwn, MakeSessionWindow},
      {"spark_session_row", Nulls::kOwn, MakeSessionWindow},
      {"spark_window_time", Nulls::kPropagate, MakeWindowTime},
  };
  return table;
}

}  // namespace fleuve::engine
