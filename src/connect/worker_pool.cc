#include <chrono>
#include <thread>

#include "connect/worker_pool_internal.h"

namespace fleuve::connect {

namespace {
constexpr std::chrono::seconds kIdleTime{5};
}

void WorkerPool::Submit(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  tasks_.push_back(std::move(task));
  if (idle_ >= static_cast<int>(tasks_.size())) {
    wake_.notify_one();
    return;
  }
  ++threads_;
  lock.unlock();
  std::thread([this] { Loop(); }).detach();
}

void WorkerPool::Drain() {
  std::unique_lock lock(mutex_);
  draining_ = true;
  wake_.notify_all();
  ended_.wait(lock, [this] { return threads_ == 0; });
}

void WorkerPool::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (tasks_.empty()) {
      if (draining_) {
        break;
      }
      ++idle_;
      const bool woken = wake_.wait_for(lock, kIdleTime, [this] { return !tasks_.empty() || draining_; });
      --idle_;
      if (!woken) {
        break;
      }
      continue;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  --threads_;
  ended_.notify_all();
}

}  // namespace fleuve::connect
