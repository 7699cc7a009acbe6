#include <cctype>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "stream/query.h"

namespace fleuve::stream {

namespace {

Error BadInterval(const std::string& text, const char* kind, const std::string& why) {
  return Error(ErrorKind::kInvalidArgument, std::string("INVALID_INTERVAL_FORMAT.") + kind,
               "Error parsing '" + text +
                   "' to interval. Please ensure that the value provided is in a valid format for "
                   "defining an interval. " +
                   why)
      .With("input", text);
}

/// Microseconds of one unit; 0 = months (not allowed), -1 = no unit.
std::int64_t UnitMicros(std::string unit) {
  if (unit.size() > 1 && unit.back() == 's') {
    unit.pop_back();
  }
  if (unit == "microsecond") return 1;
  if (unit == "millisecond") return 1000;
  if (unit == "second") return 1000000;
  if (unit == "minute") return 60LL * 1000000;
  if (unit == "hour") return 3600LL * 1000000;
  if (unit == "day") return 86400LL * 1000000;
  if (unit == "week") return 7 * 86400LL * 1000000;
  if (unit == "month" || unit == "year") return 0;
  return -1;
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (!word.empty()) {
        words.push_back(std::move(word));
        word.clear();
      }
    } else {
      word.push_back(c);
    }
  }
  if (!word.empty()) {
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

Result<std::int64_t> ParseTriggerInterval(const std::string& text) {
  std::vector<std::string> words = Words(AsciiLower(text));
  std::size_t at = 0;
  if (!words.empty() && words[0] == "interval") {
    at = 1;
  }
  if (at == words.size()) {
    return BadInterval(text, "INPUT_IS_EMPTY", "Interval string cannot be empty.");
  }
  __int128 micros = 0;
  bool months = false;
  while (at < words.size()) {
    // A sign may stand alone before its number.
    std::string number = words[at++];
    if ((number == "-" || number == "+") && at < words.size()) {
      number += words[at++];
    }
    bool negative = false;
    std::size_t i = 0;
    if (i < number.size() && (number[i] == '-' || number[i] == '+')) {
      negative = number[i] == '-';
      ++i;
    }
    __int128 whole = 0;
    std::int64_t fraction = 0;
    std::int64_t scale = 1000000;
    bool digits = false;
    bool has_fraction = false;
    for (; i < number.size() && std::isdigit(static_cast<unsigned char>(number[i])) != 0; ++i) {
      whole = whole * 10 + (number[i] - '0');
      digits = true;
      if (whole > std::numeric_limits<std::int64_t>::max()) {
        return BadInterval(text, "ARITHMETIC_EXCEPTION", "Uncaught arithmetic exception while parsing '" + text + "'.");
      }
    }
    if (i < number.size() && number[i] == '.') {
      has_fraction = true;
      for (++i; i < number.size() && std::isdigit(static_cast<unsigned char>(number[i])) != 0; ++i) {
        scale /= 10;
        fraction += (number[i] - '0') * scale;
        digits = true;
      }
    }
    if (!digits) {
      return BadInterval(text, "UNRECOGNIZED_NUMBER", "Unrecognized number '" + number + "'.");
    }
    if (i != number.size()) {
      return BadInterval(text, "INVALID_VALUE", "Invalid value '" + number + "'.");
    }
    if (at == words.size()) {
      return BadInterval(text, "MISSING_UNIT", "Expect a unit name after '" + number + "' but hit EOL.");
    }
    const std::string& unit_name = words[at++];
    const std::int64_t unit = UnitMicros(unit_name);
    if (unit < 0) {
      return BadInterval(text, "INVALID_UNIT", "Invalid unit '" + unit_name + "'.");
    }
    if (has_fraction && unit != 1000000) {
      return BadInterval(text, "INVALID_FRACTION", "'" + unit_name + "' cannot have fractional part.");
    }
    months = months || (unit == 0 && whole != 0);
    const __int128 value = whole * unit + (has_fraction ? fraction : 0);
    micros += negative ? -value : value;
  }
  if (months) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3262",
                 "Doesn't support month or year interval: " + text)
        .Family(ErrorFamily::kIllegalArgument);
  }
  if (micros < 0) {
    return Error(ErrorKind::kInvalidArgument, "", "requirement failed: the interval of trigger should not be negative")
        .Family(ErrorFamily::kIllegalArgument);
  }
  const __int128 millis = micros / 1000;
  if (millis > std::numeric_limits<std::int64_t>::max()) {
    return BadInterval(text, "ARITHMETIC_EXCEPTION", "Uncaught arithmetic exception while parsing '" + text + "'.");
  }
  return static_cast<std::int64_t>(millis);
}

Result<std::string> ParseOutputMode(const std::string& text) {
  const std::string mode = AsciiLower(text);
  if (mode.empty()) {
    return std::string("append");
  }
  if (mode == "append" || mode == "update" || mode == "complete") {
    return mode;
  }
  return Error(ErrorKind::kInvalidArgument, "STREAMING_OUTPUT_MODE.INVALID",
               "Invalid streaming output mode: " + text + ". Accepted output modes are 'Append', 'Complete', 'Update'.")
      .With("outputMode", text)
      .Family(ErrorFamily::kIllegalArgument);
}

}  // namespace fleuve::stream
