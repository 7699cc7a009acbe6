#pragma once

/// \file
/// A fixed set of threads that run tasks in the order they came.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fleuve {

/// Threads: `Submit` from any thread. The destructor finishes what was submitted, then ends.
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
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fleuve
