#pragma once

/// \file
/// Arithmetic on days and wall-clock times, in the proleptic Gregorian calendar.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "types/time_zone.h"
#include "types/value.h"

namespace fleuve::engine {

constexpr std::int64_t kDayMicros = 86400000000;

inline std::int64_t FloorDiv(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}
inline std::int64_t FloorMod(std::int64_t a, std::int64_t b) { return a - FloorDiv(a, b) * b; }

struct CivilDate {
  std::int64_t year = 1970;
  unsigned month = 1;
  unsigned day = 1;
};
inline CivilDate CivilOf(std::int64_t days) {
  CivilDate date;
  types::CivilFromDays(days, &date.year, &date.month, &date.day);
  return date;
}
inline bool IsLeap(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }
inline unsigned DaysInMonth(std::int64_t year, unsigned month) {
  static constexpr unsigned kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeap(year) ? 29 : kDays[month - 1];
}
/// Monday = 1 ... Sunday = 7.
inline int IsoWeekday(std::int64_t days) { return static_cast<int>(FloorMod(days + 3, 7)) + 1; }
/// The day of month is cut to the length of the month.
inline std::int64_t AddMonths(std::int64_t days, std::int64_t months) {
  CivilDate date = CivilOf(days);
  std::int64_t index = date.year * 12 + static_cast<std::int64_t>(date.month) - 1 + months;
  std::int64_t year = FloorDiv(index, 12);
  auto month = static_cast<unsigned>(FloorMod(index, 12)) + 1;
  unsigned day = date.day < DaysInMonth(year, month) ? date.day : DaysInMonth(year, month);
  return types::DaysFromCivil(year, month, day);
}
/// ISO week and the year it belongs to.
inline void IsoWeek(std::int64_t days, std::int64_t* year, int* week) {
  std::int64_t thursday = days - IsoWeekday(days) + 4;
  *year = CivilOf(thursday).year;
  *week = static_cast<int>((thursday - types::DaysFromCivil(*year, 1, 1)) / 7) + 1;
}
/// An instant moved by an interval in the calendar of its zone. False on overflow.
bool AddInterval(std::int64_t micros, std::int64_t months, std::int64_t days, std::int64_t more,
                 const types::TimeZone& zone, std::int64_t* out);
/// The zone, or the error raised for the row.
std::shared_ptr<const types::TimeZone> ZoneOrThrow(std::string_view id);

}  // namespace fleuve::engine
