#pragma once

/// \file
/// Time as a dependency: product code asks a Clock, tests move one by hand.

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace fleuve {

/// Threads: every method may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Microseconds since the Unix epoch, UTC; may jump.
  virtual std::int64_t NowMicros() const = 0;
  std::int64_t NowMillis() const { return NowMicros() / 1000; }
  /// Nanoseconds on a clock that never goes back; only differences mean something.
  virtual std::int64_t MonotonicNanos() const = 0;

  /// The machine's clock. Lives as long as the process.
  static Clock* System();
};

/// A clock that stands still until told otherwise.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t now_micros) : now_micros_(now_micros) {}
  std::int64_t NowMicros() const override;
  std::int64_t MonotonicNanos() const override;
  void AdvanceMicros(std::int64_t micros);

 private:
  mutable std::mutex mutex_;
  std::int64_t now_micros_;
};

}  // namespace fleuve
