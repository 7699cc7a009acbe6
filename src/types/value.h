#pragma once

/// \file
/// One value of a data type: literals, defaults, partition values, statistics bounds. Not for rows on the data path.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "types/data_type.h"

namespace fleuve::types {

/// Months, days, microseconds: a calendar interval.
struct CalendarInterval {
  std::int32_t months = 0;
  std::int32_t days = 0;
  std::int64_t micros = 0;
  bool operator==(const CalendarInterval&) const = default;
};

using Int128 = __int128;

/// NULL or a value, without its type. Representation by type kind:
/// boolean bool; byte..long, date (days), timestamps (micros), intervals (months | micros) int64; float, double double;
/// decimal Int128 (unscaled); string, char, varchar, binary std::string; calendar interval CalendarInterval;
/// array, struct List; map List of two-element Lists.
class Value {
 public:
  using List = std::vector<Value>;

  Value() = default;                                                    ///< NULL
  Value(bool v) : data_(v) {}                                           // NOLINT: implicit on purpose
  Value(std::int64_t v) : data_(v) {}                                   // NOLINT
  Value(int v) : data_(static_cast<std::int64_t>(v)) {}                 // NOLINT
  Value(double v) : data_(v) {}                                         // NOLINT
  Value(Int128 v) : data_(v) {}                                         // NOLINT
  Value(std::string v) : data_(std::move(v)) {}                         // NOLINT
  Value(const char* v) : data_(std::string(v)) {}                       // NOLINT
  Value(CalendarInterval v) : data_(v) {}                               // NOLINT
  Value(List v) : data_(std::make_shared<const List>(std::move(v))) {}  // NOLINT

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const { return std::get<std::int64_t>(data_); }
  double real() const { return std::get<double>(data_); }
  Int128 decimal() const { return std::get<Int128>(data_); }
  const std::string& text() const { return std::get<std::string>(data_); }
  const CalendarInterval& interval() const { return std::get<CalendarInterval>(data_); }
  const List& list() const { return *std::get<std::shared_ptr<const List>>(data_); }

  bool operator==(const Value& other) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, Int128, std::string, CalendarInterval,
               std::shared_ptr<const List>>
      data_;
};

/// `12.30` for (1230, 2).
std::string DecimalToString(Int128 unscaled, int scale);
/// Parses `[+-]digits[.digits][e±n]` exactly; kInvalidArgument where it is no number or has over 38 digits.
/// Returns the unscaled value and its scale (never negative).
Result<std::pair<Int128, int>> DecimalFromString(std::string_view text);

/// 2024-01-05 for 19727 (days since the epoch; years beyond 9999 with a plus sign as Spark prints).
std::string DateToString(std::int64_t days);
/// yyyy-MM-dd HH:mm:ss[.ffffff] without trailing zeros, of a wall-clock time in microseconds.
std::string TimestampNtzToString(std::int64_t micros);
/// The same in the zone `zone` (region id, +HH:mm, UTC, Z). kInvalidArgument for an unknown zone.
Result<std::string> TimestampToString(std::int64_t micros, const std::string& zone);
/// Days from civil date; no check of ranges.
std::int64_t DaysFromCivil(std::int64_t year, unsigned month, unsigned day);
void CivilFromDays(std::int64_t days, std::int64_t* year, unsigned* month, unsigned* day);
/// Spark's cast from string to date: `2024`, `2024-1`, `2024-1-5`, `2024-01-05T...`; nullopt where it is none.
std::optional<std::int64_t> ParseDate(std::string_view text);
/// Spark's cast from string to timestamp in `zone`; nullopt where it is none.
std::optional<std::int64_t> ParseTimestamp(std::string_view text, const std::string& zone);
std::optional<std::int64_t> ParseTimestampNtz(std::string_view text);

}  // namespace fleuve::types
