#pragma once

/// \file
/// Threads for calls that may wait: as many as run at once, none when idle.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace fleuve::connect {

/// Threads: `Submit` from any thread.
class WorkerPool {
 public:
  WorkerPool() = default;
  ~WorkerPool() { Drain(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Runs `task` soon, on an idle thread or a new one; never waits behind another task.
  void Submit(std::function<void()> task);
  /// Waits until every task has ended and every thread is gone. No `Submit` may follow.
  void Drain();

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable ended_;
  std::deque<std::function<void()>> tasks_;
  int idle_ = 0;
  int threads_ = 0;
  bool draining_ = false;
};

}  // namespace fleuve::connect
