#pragma once

/// \file
/// Time zones through ICU: the only source of zone data in the process.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fleuve::types {

/// A resolved zone. Threads: const methods from any thread.
class TimeZone {
 public:
  virtual ~TimeZone() = default;
  /// Offset from UTC in seconds at an instant (microseconds since the epoch).
  virtual std::int64_t OffsetSecondsAtUtc(std::int64_t utc_micros) const = 0;
  /// The instant of a wall-clock time; in a gap the time moves forward by the gap's length, in an overlap the earlier
  /// offset is taken: as java.time does.
  virtual std::int64_t LocalToUtc(std::int64_t local_micros) const = 0;
  std::int64_t UtcToLocal(std::int64_t utc_micros) const {
    return utc_micros + OffsetSecondsAtUtc(utc_micros) * 1000000;
  }
  const std::string& id() const { return id_; }

  /// Looks up a region id (`Europe/Paris`), an offset (`+01:00`, `-8`), `UTC`, `Z`, `GMT+1`. Cached for ever.
  /// INVALID_TIMEZONE (kInvalidArgument) otherwise.
  static Result<std::shared_ptr<const TimeZone>> Find(std::string_view id);

 protected:
  explicit TimeZone(std::string id) : id_(std::move(id)) {}

 private:
  std::string id_;
};

}  // namespace fleuve::types
