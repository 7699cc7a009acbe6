#include "base/resource_lease.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fleuve {

ResourceLease::~ResourceLease() { budget_->Release(threads_); }

Result<std::unique_ptr<ResourceLease>> ResourceBudget::Acquire(int threads_wanted, const CancellationTokenPtr& token) {
  std::int64_t key = 0;
  if (token) {
    key = token->AddCallback([this] { freed_.notify_all(); });
  }
  int granted = 0;
  {
    std::unique_lock lock(mutex_);
    while (threads_lent_ >= threads_ && !(token && token->cancelled())) {
      // The notify of a cancellation is sent without this mutex: look again now and then.
      freed_.wait_for(lock, std::chrono::milliseconds(50));
    }
    if (!(token && token->cancelled())) {
      granted = std::clamp(threads_wanted, 1, threads_ - threads_lent_);
      threads_lent_ += granted;
    }
  }
  if (token) {
    token->RemoveCallback(key);
  }
  if (granted == 0) {
    return Error::Cancelled();
  }
  return std::make_unique<ResourceLease>(this, granted, memory_bytes_ / threads_ * granted);
}

std::unique_ptr<ResourceLease> ResourceBudget::TryAcquire() {
  {
    const std::lock_guard lock(mutex_);
    if (threads_lent_ >= threads_) {
      return nullptr;
    }
    ++threads_lent_;
  }
  return std::make_unique<ResourceLease>(this, 1, memory_bytes_ / threads_);
}

void ResourceBudget::Release(int threads) {
  {
    const std::lock_guard lock(mutex_);
    threads_lent_ -= threads;
  }
  freed_.notify_all();
}

std::int64_t ResourceBudget::DefaultMemoryBytes() {
  std::int64_t bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (std::FILE* limit = std::fopen("/sys/fs/cgroup/memory.max", "r")) {
    long long value = 0;
    if (std::fscanf(limit, "%lld", &value) == 1 && value > 0) {
      bytes = std::min(bytes, static_cast<std::int64_t>(value));
    }
    std::fclose(limit);
  }
  return bytes / 10 * 6;
}

}  // namespace fleuve
