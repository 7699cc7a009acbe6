#pragma once

/// \file
/// Dates and timestamps as text under a pattern of Java's DateTimeFormatter, or Spark's default forms.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "types/time_zone.h"

namespace fleuve::engine {

/// A compiled pattern. Threads: const methods from any thread.
class TimePattern {
 public:
  /// Letters y u M L d D E a h H k K m s S n X x Z z V O Q q G with quotes and optional sections. Others, and text
  /// forms in another language than English, are refused: INVALID_DATETIME_PATTERN.*.
  static Result<TimePattern> Compile(const std::string& pattern);

  /// What the text says; nullopt where it does not match the whole pattern or is no date.
  struct Parsed {
    std::int64_t local_micros = 0;
    /// Seconds east of UTC where the text has an offset.
    std::optional<std::int64_t> offset_seconds;
    /// A zone named in the text.
    std::shared_ptr<const types::TimeZone> zone;
  };
  std::optional<Parsed> Parse(std::string_view text) const;

  /// \param offset_seconds  east of UTC, for X x Z O; \param zone_id  for V and z.
  void Format(std::int64_t local_micros, std::int64_t offset_seconds, const std::string& zone_id,
              std::string& out) const;

 private:
  struct Item {
    char letter = 0;  ///< 0: literal; '[' and ']': optional section
    int count = 0;
    std::string literal;
    std::size_t partner = 0;  ///< '[': index of its ']'
  };
  struct Fields;
  bool Match(std::size_t from, std::size_t to, std::string_view text, std::size_t& position, Fields& fields) const;
  bool MatchItem(std::size_t index, std::string_view text, std::size_t& position, Fields& fields) const;

  std::vector<Item> items_;
};

/// Text to and from date, timestamp and timestamp_ntz values under reader or writer options. Threads: const, any.
class TimeText {
 public:
  /// An empty pattern means Spark's default form. \param zone  session zone or option timeZone.
  static Result<TimeText> Make(const std::string& date_pattern, const std::string& timestamp_pattern,
                               const std::string& ntz_pattern, const std::string& zone);

  std::optional<std::int64_t> ParseDate(std::string_view text) const;
  std::optional<std::int64_t> ParseTimestamp(std::string_view text) const;
  std::optional<std::int64_t> ParseTimestampNtz(std::string_view text) const;
  /// The same for values, not for types: what does not match the pattern may be in the default form where `fallback`.
  std::optional<std::int64_t> ReadDate(std::string_view text, bool fallback) const;
  std::optional<std::int64_t> ReadTimestamp(std::string_view text, bool fallback) const;

  void FormatDate(std::int64_t days, std::string& out) const;
  void FormatTimestamp(std::int64_t micros, std::string& out) const;
  void FormatTimestampNtz(std::int64_t micros, std::string& out) const;

  bool has_timestamp_pattern() const { return timestamp_.has_value(); }
  bool has_date_pattern() const { return date_.has_value(); }
  const types::TimeZone& zone() const { return *zone_; }

 private:
  std::optional<TimePattern> date_;
  std::optional<TimePattern> timestamp_;
  std::optional<TimePattern> ntz_;
  std::string zone_name_;
  bool is_utc_ = false;
  std::shared_ptr<const types::TimeZone> zone_;
};

}  // namespace fleuve::engine
