#pragma once

/// \file
/// A flag that asks running work to end, and the callbacks that wake what waits.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.h"

namespace fleuve {

/// Shared by who may cancel and who must listen. Threads: any.
class CancellationToken {
 public:
  /// Asks for the end; runs the registered callbacks once, in the calling thread.
  void Cancel();
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  /// kCancelled (OPERATION_CANCELED) once cancelled.
  Result<void> Check() const;
  /// Registers what ends a wait (an engine's interrupt, a condition variable's notify). Runs at once if already
  /// cancelled. Returns a key for `RemoveCallback`, which waits for a callback that is running.
  std::int64_t AddCallback(std::function<void()> callback);
  void RemoveCallback(std::int64_t key);

 private:
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::int64_t next_key_ = 1;
  std::map<std::int64_t, std::function<void()>> callbacks_;
};

using CancellationTokenPtr = std::shared_ptr<CancellationToken>;

}  // namespace fleuve
