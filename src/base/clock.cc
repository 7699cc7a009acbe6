#include "base/clock.h"

#include <chrono>

namespace fleuve {
namespace {

class SystemClock final : public Clock {
 public:
  std::int64_t NowMicros() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::int64_t MonotonicNanos() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace

Clock* Clock::System() {
  static SystemClock clock;
  return &clock;
}

std::int64_t ManualClock::NowMicros() const {
  const std::lock_guard lock(mutex_);
  return now_micros_;
}

std::int64_t ManualClock::MonotonicNanos() const { return NowMicros() * 1000; }

void ManualClock::AdvanceMicros(std::int64_t micros) {
  const std::lock_guard lock(mutex_);
  now_micros_ += micros;
}

}  // namespace fleuve
