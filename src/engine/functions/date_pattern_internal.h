#pragma once

/// \file
/// Java's date-time patterns as Spark uses them: `yyyy-MM-dd HH:mm:ss[.SSS] VV`.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "types/time_zone.h"

namespace fleuve::engine {

/// A compiled pattern. Immutable.
class DatePattern {
 public:
  /// INVALID_DATETIME_PATTERN.* and INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION where Spark raises
  /// them. \param parsing  letters that only format are refused
  static Result<std::shared_ptr<const DatePattern>> Compile(std::string_view pattern, bool parsing);

  /// Text of an instant in a zone.
  std::string Format(std::int64_t micros, const types::TimeZone& zone) const;

  /// The wall-clock time that `text` names, and its zone where the text has one. nullopt where it does not match.
  struct Parsed {
    std::int64_t local = 0;
    std::shared_ptr<const types::TimeZone> zone;
  };
  std::optional<Parsed> Parse(std::string_view text) const;

 private:
  struct Item {
    char letter = 0;  ///< 0: literal text; '[' and ']' around optional parts
    int count = 0;
    std::string text;
    int close = 0;  ///< of '[': index of its ']'
  };
  struct Fields;
  bool ParseItems(std::size_t from, std::size_t to, std::string_view text, std::size_t* at, Fields* fields) const;
  std::string FormatItems(std::size_t from, std::size_t to, std::int64_t micros, const types::TimeZone& zone) const;

  std::vector<Item> items_;
};

}  // namespace fleuve::engine
