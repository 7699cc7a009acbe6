#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "python/worker.h"
#include "python/worker_module_internal.h"

namespace fleuve::python {

namespace {

constexpr std::size_t kMaxIdle = 8;
/// A worker leaves by itself after 60 s without a task; it is not lent any more well before that.
constexpr std::int64_t kIdleNs = std::int64_t{45} * 1000000000;

}  // namespace

BorrowedWorker& BorrowedWorker::operator=(BorrowedWorker&& other) noexcept {
  if (this != &other) {
    GiveBack();
    pool_ = std::move(other.pool_);
    worker_ = std::move(other.worker_);
  }
  return *this;
}

void BorrowedWorker::GiveBack() {
  if (worker_ && pool_ && worker_->is_free()) {
    pool_->TakeBack(std::move(worker_));
  }
  worker_.reset();
  pool_.reset();
}

std::shared_ptr<WorkerPool> WorkerPool::Make(std::string scratch, WorkerLimits default_limits) {
  return std::shared_ptr<WorkerPool>(new WorkerPool(std::move(scratch), default_limits));
}

WorkerPool::~WorkerPool() = default;

Result<std::string> WorkerPool::ModuleFolder() {
  namespace fs = std::filesystem;
  const std::string folder = scratch_ + "/python";
  std::lock_guard lock(mutex_);
  std::error_code ignored;
  if (module_written_ && fs::exists(folder + "/fleuve_worker/__main__.py", ignored)) {
    return folder;  // a system that cleans its temporary folders may have taken it meanwhile
  }
  for (const EmbeddedFile& file : WorkerModuleFiles()) {
    const fs::path path = fs::path(folder) / file.path;
    std::error_code code;
    fs::create_directories(path.parent_path(), code);
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(file.text.data(), static_cast<std::streamsize>(file.text.size()));
    out.close();
    if (!out) {
      return Error(ErrorKind::kResourceExhausted, "", "cannot write the Python worker module to " + path.string());
    }
  }
  module_written_ = true;
  return folder;
}

Result<BorrowedWorker> WorkerPool::Borrow(const WorkerSetup& setup) {
  const std::int64_t now = Clock::System()->MonotonicNanos();
  std::vector<Idle> ended;
  std::unique_ptr<Worker> found;
  {
    std::lock_guard lock(mutex_);
    for (std::size_t i = idle_.size(); i-- > 0;) {
      if (now - idle_[i].since_ns > kIdleNs || idle_[i].worker->IsGone()) {
        ended.push_back(std::move(idle_[i]));
        idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (!found && idle_[i].worker->setup() == setup) {
        found = std::move(idle_[i].worker);
        idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
  if (!found) {
    FLEUVE_ASSIGN(const std::string folder, ModuleFolder());
    FLEUVE_ASSIGN(found, Worker::Start(setup, folder));
  }
  return BorrowedWorker(shared_from_this(), std::move(found));
}

void WorkerPool::TakeBack(std::unique_ptr<Worker> worker) {
  std::vector<Idle> ended;
  std::lock_guard lock(mutex_);
  if (idle_.size() >= kMaxIdle) {
    ended.push_back(std::move(idle_.front()));
    idle_.erase(idle_.begin());
  }
  idle_.push_back({std::move(worker), Clock::System()->MonotonicNanos()});
}

void WorkerPool::Forget(const std::string& owner) {
  std::vector<Idle> ended;
  std::lock_guard lock(mutex_);
  for (std::size_t i = idle_.size(); i-- > 0;) {
    if (idle_[i].worker->setup().owner == owner) {
      ended.push_back(std::move(idle_[i]));
      idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace fleuve::python
