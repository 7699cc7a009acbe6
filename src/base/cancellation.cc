#include "base/cancellation.h"

namespace fleuve {

void CancellationToken::Cancel() {
  const std::lock_guard lock(mutex_);
  if (cancelled_.exchange(true)) {
    return;
  }
  for (const auto& [key, callback] : callbacks_) {
    callback();
  }
}

Result<void> CancellationToken::Check() const {
  if (cancelled()) {
    return Error::Cancelled();
  }
  return {};
}

std::int64_t CancellationToken::AddCallback(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (cancelled()) {
    callback();
    return 0;
  }
  callbacks_.emplace(next_key_, std::move(callback));
  return next_key_++;
}

void CancellationToken::RemoveCallback(std::int64_t key) {
  const std::lock_guard lock(mutex_);
  callbacks_.erase(key);
}

}  // namespace fleuve
