#pragma once

/// \file
/// Time spent in a scope, for the metrics of operators.

#include <chrono>
#include <cstdint>

namespace fleuve::operators {

/// Adds the nanoseconds between its beginning and its end.
class Stopwatch {
 public:
  explicit Stopwatch(std::int64_t* total_ns) : total_ns_(total_ns), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    *total_ns_ +=
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::int64_t* total_ns_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace fleuve::operators
