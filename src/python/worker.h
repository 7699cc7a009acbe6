#pragma once

/// \file
/// Processes that run the user's Python: one task at a time each, over a socket, and the pool that keeps them warm.
///
///     auto worker = pool->Borrow(setup);
///     worker->Begin({.kind = "map", .header = ..., .blobs = {command}}, token);
///     for (;;) {
///       auto event = worker->Next();
///       kNeedInput -> Give(bytes) or GiveEnd();  kOutput -> event.bytes;  kMessage -> Reply(...);  kDone -> break
///     }
///
/// The worker asks for each piece of input, so neither side ever waits on a full pipe while the other one does. The
/// other end is `python/fleuve_worker`: a task of kind K runs `run(task)` of `fleuve_worker/kinds/K.py`.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/json.h"
#include "base/result.h"

namespace fleuve::python {

/// What a worker process is started with. Workers are only shared between tasks of an equal setup.
struct WorkerSetup {
  /// The interpreter; empty: FLEUVE_PYTHON, else VIRTUAL_ENV, else python3.
  std::string executable;
  /// Whose code runs (the session's key): processes are never shared between owners.
  std::string owner;
  /// Put before the interpreter's own module path (the session's py files).
  std::vector<std::string> module_paths;
  /// The working folder; empty: the server's.
  std::string folder;
  /// Added to the server's environment.
  std::map<std::string, std::string> environment;

  bool operator==(const WorkerSetup& other) const = default;
};

struct WorkerLimits {
  /// Resident bytes of the process during a task; 0: no limit.
  std::int64_t memory_bytes = 0;
  /// Milliseconds that one task may take; 0: no limit.
  std::int64_t task_ms = 0;
};

struct Task {
  /// The name of a module in `fleuve_worker/kinds`.
  std::string kind;
  /// `task.header`, a dict. The member `python_version` ("3.11"), where there is one, must be the worker's own, else
  /// the task fails with PYTHON_VERSION_MISMATCH.
  Json header;
  /// `task.blobs`, a list of bytes: pickled functions and the like. Only read during `Begin`.
  std::vector<std::string_view> blobs;
  WorkerLimits limits;
};

enum class EventKind {
  kNeedInput,  ///< to be answered by Give or GiveEnd
  kOutput,     ///< `bytes`: what the task wrote (by convention one Arrow IPC stream of its own)
  kMessage,    ///< `message`, `bytes`: a question of the task, to be answered by Reply
  kDone,       ///< `message`: the task's result; the worker is free for the next task
};

struct Event {
  EventKind kind = EventKind::kDone;
  /// Which input or output of the task (0 unless the task has several).
  std::uint32_t channel = 0;
  std::string bytes;
  Json message;
};

/// One worker process. Threads: one caller at a time; the token may be cancelled from anywhere.
class Worker {
 public:
  /// Starts a process. FLEUVE_NO_PYTHON where the interpreter cannot be started.
  static Result<std::unique_ptr<Worker>> Start(const WorkerSetup& setup, const std::string& module_folder);
  /// Kills the process and all that it started in its process group.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Sends a task. From here until kDone, cancelling `token` (may be null) kills the process and ends every wait.
  Result<void> Begin(const Task& task, CancellationTokenPtr token);
  /// Waits for what the task does next. After an error the worker is of no more use, unless the error is the task's own
  /// (`is_free()` then). Errors:
  /// PYTHON_EXCEPTION: user code raised; the message is Python's traceback, parameter `class` the exception's class,
  ///   and for PySpark's own exceptions `condition` its error class;
  /// FLEUVE_PYTHON_WORKER_DIED (kInternal): the process ended; FLEUVE_PYTHON_MEMORY_LIMIT, FLEUVE_PYTHON_TIME_LIMIT
  /// (kResourceExhausted): it was killed; kCancelled: the token.
  Result<Event> Next();
  /// Answers kNeedInput.
  Result<void> Give(std::string_view bytes, std::uint32_t channel = 0);
  Result<void> GiveEnd(std::uint32_t channel = 0);
  /// Answers kMessage.
  Result<void> Reply(const Json& message, std::string_view bytes = {});

  /// A time limit for what the task does from now on (a task that serves many requests); 0: none.
  void RestartClock(std::int64_t task_ms);

  /// True between tasks: the next one may begin.
  bool is_free() const { return is_free_; }
  pid_t pid() const { return pid_; }
  const WorkerSetup& setup() const { return setup_; }
  /// True where the process is known to be gone.
  bool IsGone();

 private:
  Worker() = default;
  void Kill();
  void EndTask();
  Result<void> Send(std::uint8_t type, std::uint32_t channel, std::initializer_list<std::string_view> parts);
  Result<void> ReceiveBytes(char* out, std::size_t size);
  /// Waits until the socket is ready for `events`, looking at the limits meanwhile.
  Result<void> Wait(short events);
  Error Death();

  WorkerSetup setup_;
  pid_t pid_ = -1;
  int socket_ = -1;
  bool is_free_ = true;
  bool reaped_ = false;
  int exit_status_ = 0;
  std::mutex kill_mutex_;  ///< pid_ is not reaped while a cancelling thread kills it
  CancellationTokenPtr token_;
  std::int64_t token_key_ = 0;
  WorkerLimits limits_;
  std::int64_t deadline_ns_ = 0;
  std::int64_t next_memory_check_ns_ = 0;
};

class WorkerPool;

/// A worker lent by a pool; goes back when it is free at the end, else its process is killed.
class BorrowedWorker {
 public:
  BorrowedWorker() = default;
  BorrowedWorker(std::shared_ptr<WorkerPool> pool, std::unique_ptr<Worker> worker)
      : pool_(std::move(pool)), worker_(std::move(worker)) {}
  BorrowedWorker(BorrowedWorker&&) = default;
  BorrowedWorker& operator=(BorrowedWorker&& other) noexcept;
  ~BorrowedWorker() { GiveBack(); }
  Worker* operator->() const { return worker_.get(); }
  Worker* get() const { return worker_.get(); }
  explicit operator bool() const { return worker_ != nullptr; }
  void GiveBack();

 private:
  std::shared_ptr<WorkerPool> pool_;
  std::unique_ptr<Worker> worker_;
};

/// The worker processes of this server. Threads: any.
class WorkerPool : public std::enable_shared_from_this<WorkerPool> {
 public:
  /// \param scratch  a folder of this process: the worker module is written below it at the first use.
  /// \param default_limits  for tasks whose own limits are 0.
  static std::shared_ptr<WorkerPool> Make(std::string scratch, WorkerLimits default_limits = {});
  ~WorkerPool();

  /// A free process with this setup: one that is idle, else a new one.
  Result<BorrowedWorker> Borrow(const WorkerSetup& setup);
  /// Ends the idle processes of an owner that is gone.
  void Forget(const std::string& owner);
  const WorkerLimits& default_limits() const { return default_limits_; }

 private:
  friend class BorrowedWorker;
  struct Idle {
    std::unique_ptr<Worker> worker;
    std::int64_t since_ns = 0;
  };
  WorkerPool(std::string scratch, WorkerLimits limits) : scratch_(std::move(scratch)), default_limits_(limits) {}
  Result<std::string> ModuleFolder();
  void TakeBack(std::unique_ptr<Worker> worker);

  const std::string scratch_;
  const WorkerLimits default_limits_;
  std::mutex mutex_;
  bool module_written_ = false;
  std::vector<Idle> idle_;
};

/// The interpreter that runs user code where nothing else is said: FLEUVE_PYTHON, else VIRTUAL_ENV, else python3.
std::string UserPython();

}  // namespace fleuve::python
