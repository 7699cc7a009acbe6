#pragma once

/// \file
/// A fixed set of threads that run tasks in the order they came.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace fleuve {

/// Threads: `Submit` from any thread. The destructor finishes what was submitted, then ends; where a task of the pool
/// itself drops it, the rest is finished after it has returned.
class ThreadPool {
 public:
  /// \param threads  1 or more.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void Submit(std::function<void()> task);
  /// Runs all tasks side by side and waits for them. A task may not call RunAll of the same pool.
  void RunAll(std::vector<std::function<void()>> tasks);

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::function<void()>> tasks;
    bool ending = false;
  };
  static void Loop(const std::shared_ptr<Queue>& queue);

  /// Outlives the pool where a task of its own drops it.
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::vector<std::thread> threads_;
};

}  // namespace fleuve
