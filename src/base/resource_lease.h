#pragma once

/// \file
/// The process's budget of threads and memory, lent to work while it runs.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/cancellation.h"
#include "base/result.h"

namespace fleuve {

class ResourceBudget;

/// What a piece of work may use until the lease dies.
class ResourceLease {
 public:
  ResourceLease(ResourceBudget* budget, int threads, std::int64_t memory_bytes)
      : budget_(budget), threads_(threads), memory_bytes_(memory_bytes) {}
  ~ResourceLease();
  ResourceLease(const ResourceLease&) = delete;
  ResourceLease& operator=(const ResourceLease&) = delete;
  int threads() const { return threads_; }
  std::int64_t memory_bytes() const { return memory_bytes_; }

 private:
  ResourceBudget* budget_;
  int threads_;
  std::int64_t memory_bytes_;
};

/// One per process. Threads: any.
class ResourceBudget {
 public:
  /// \param threads       1 or more; \param memory_bytes  what all leases together may use.
  ResourceBudget(int threads, std::int64_t memory_bytes) : threads_(threads), memory_bytes_(memory_bytes) {}

  /// Waits until a share is free: at most `threads_wanted` threads, at least one; memory in proportion to the number
  /// of leases. kCancelled when the token is cancelled first.
  Result<std::unique_ptr<ResourceLease>> Acquire(int threads_wanted, const CancellationTokenPtr& token);

  /// One more thread for work that goes on without it as well; null where none is free.
  std::unique_ptr<ResourceLease> TryAcquire();

  int threads() const { return threads_; }
  std::int64_t memory_bytes() const { return memory_bytes_; }

  /// 60 % of the smaller of the control group's limit and the machine's memory, in bytes.
  static std::int64_t DefaultMemoryBytes();

 private:
  friend class ResourceLease;
  void Release(int threads);

  const int threads_;
  const std::int64_t memory_bytes_;
  std::mutex mutex_;
  std::condition_variable freed_;
  int threads_lent_ = 0;
};

}  // namespace fleuve
