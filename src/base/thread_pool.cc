#include "base/thread_pool.h"

#include <latch>

namespace fleuve {

ThreadPool::ThreadPool(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([queue = queue_] { Loop(queue); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->ending = true;
  }
  queue_->wake.notify_all();
  for (auto& thread : threads_) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void ThreadPool::Submit(std::function<void()> task) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->tasks.push_back(std::move(task));
  }
  queue_->wake.notify_one();
}

void ThreadPool::RunAll(std::vector<std::function<void()>> tasks) {
  if (tasks.empty()) {
    return;
  }
  std::latch done(static_cast<std::ptrdiff_t>(tasks.size()) - 1);
  for (std::size_t i = 1; i < tasks.size(); ++i) {
    Submit([task = std::move(tasks[i]), &done] {
      task();
      done.count_down();
    });
  }
  tasks[0]();
  done.wait();
}

void ThreadPool::Loop(const std::shared_ptr<Queue>& queue) {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock lock(queue->mutex);
      queue->wake.wait(lock, [&] { return queue->ending || !queue->tasks.empty(); });
      if (queue->tasks.empty()) {
        return;
      }
      task = std::move(queue->tasks.front());
      queue->tasks.pop_front();
    }
    task();
  }
}

}  // namespace fleuve
