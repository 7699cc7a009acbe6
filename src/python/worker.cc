#include "python/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"

extern char** environ;

namespace fleuve::python {

namespace {

// Frames: type (1 byte), channel (4), length (8), payload; little endian.
constexpr std::size_t kFrameHead = 13;
constexpr std::uint64_t kLargestFrame = std::uint64_t{1} << 36;
constexpr std::uint8_t kTask = 'T';
constexpr std::uint8_t kData = 'D';
constexpr std::uint8_t kEnd = 'E';
constexpr std::uint8_t kNeed = 'N';
constexpr std::uint8_t kAsk = 'M';
constexpr std::uint8_t kRaised = 'X';
constexpr int kWorkerFd = 3;
constexpr std::int64_t kMemoryCheckNs = 200000000;

std::int64_t MonotonicNs() { return Clock::System()->MonotonicNanos(); }

void AppendU32(std::string& out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

void AppendU64(std::string& out, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

std::uint64_t ReadLittle(const char* bytes, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

/// Resident bytes of a process; 0 where it cannot be told.
std::int64_t ResidentBytes(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/statm", static_cast<int>(pid));
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) {
    return 0;
  }
  long long total = 0;
  long long resident = 0;
  const int fields = std::fscanf(file, "%lld %lld", &total, &resident);
  std::fclose(file);
  return fields == 2 ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

std::string Mebibytes(std::int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

std::string UserPython() {
  if (const char* named = std::getenv("FLEUVE_PYTHON"); named != nullptr && *named != '\0') {
    return named;
  }
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment != nullptr && *environment != '\0') {
    return std::string(environment) + "/bin/python";
  }
  return "python3";
}

Result<std::unique_ptr<Worker>> Worker::Start(const WorkerSetup& setup, const std::string& module_folder) {
  std::unique_ptr<Worker> worker(new Worker());
  worker->setup_ = setup;
  const std::string python = setup.executable.empty() ? UserPython() : setup.executable;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return Error(ErrorKind::kResourceExhausted, "", std::string("cannot open a socket: ") + std::strerror(errno));
  }
  worker->socket_ = pair[0];
  std::vector<std::string> words = {python, "-u", module_folder + "/fleuve_worker", std::to_string(kWorkerFd)};
  words.insert(words.end(), setup.module_paths.begin(), setup.module_paths.end());
  std::vector<char*> argv;
  for (auto& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    char* equals = std::strchr(*entry, '=');
    if (equals != nullptr) {
      variables[std::string(*entry, static_cast<std::size_t>(equals - *entry))] = equals + 1;
    }
  }
  // What `fleuve run` tells its own program is not meant for the functions of others.
  variables.erase("SPARK_REMOTE");
  for (const auto& [name, value] : setup.environment) {
    variables[name] = value;
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) {
    lines.push_back(name + "=" + value);
  }
  std::vector<char*> envp;
  for (auto& line : lines) {
    envp.push_back(line.data());
  }
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // What user code prints goes to the server's log, never to the output of `fleuve run`.
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pair[1], kWorkerFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kWorkerFd + 1);
  if (!setup.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, setup.folder.c_str());
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t all;
  sigset_t none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pair[1]);
  if (failed != 0) {
    return Error(ErrorKind::kNotFound, "FLEUVE_NO_PYTHON",
                 "cannot start the Python '" + python + "' (" + std::strerror(failed) +
                     "); name one in FLEUVE_PYTHON or activate a virtual environment before the server starts");
  }
  worker->pid_ = pid;
  const int flags = ::fcntl(worker->socket_, F_GETFL);
  ::fcntl(worker->socket_, F_SETFL, flags | O_NONBLOCK);
  return worker;
}

Worker::~Worker() {
  EndTask();
  Kill();
  if (pid_ > 0 && !reaped_) {
    ::waitpid(pid_, &exit_status_, 0);
  }
  if (socket_ >= 0) {
    ::close(socket_);
  }
}

void Worker::Kill() {
  std::lock_guard lock(kill_mutex_);
  if (pid_ > 0 && !reaped_) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
  }
}

bool Worker::IsGone() {
  pollfd waiter{socket_, POLLIN, 0};
  // A free worker says nothing: whatever can be read is the end of the stream.
  return ::poll(&waiter, 1, 0) != 0;
}

void Worker::EndTask() {
  if (token_) {
    token_->RemoveCallback(token_key_);
    token_.reset();
  }
}

Error Worker::Death() {
  if (token_ && token_->cancelled()) {
    EndTask();
    return Error::Cancelled();
  }
  EndTask();
  Kill();
  int status = 0;
  {
    // A process that closed its socket is as good as dead, and `Kill` has seen to it.
    const pid_t pid = pid_;
    ::waitpid(pid, &status, 0);
    std::lock_guard lock(kill_mutex_);
    reaped_ = true;
    exit_status_ = status;
  }
  std::string how;
  if (WIFSIGNALED(status)) {
    how = "killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  } else {
    how = "exit code " + std::to_string(WEXITSTATUS(status));
  }
  return Error(ErrorKind::kInternal, "FLEUVE_PYTHON_WORKER_DIED",
               "Python worker exited unexpectedly (crashed): process " + std::to_string(pid_) + ", " + how +
                   ". What it printed last is in the server's log.")
      .With("pid", std::to_string(pid_))
      .With("how", how);
}

Result<void> Worker::Wait(short events) {
  while (true) {
    const std::int64_t now = MonotonicNs();
    if (deadline_ns_ != 0 && now >= deadline_ns_) {
      EndTask();
      Kill();
      return Error(ErrorKind::kResourceExhausted, "FLEUVE_PYTHON_TIME_LIMIT",
                   "The Python worker was ended: its task took longer than " + std::to_string(limits_.task_ms) +
                       " ms. Raise fleuve.python.taskTimeout or give it less work.");
    }
    if (limits_.memory_bytes > 0 && now >= next_memory_check_ns_) {
      next_memory_check_ns_ = now + kMemoryCheckNs;
      if (const std::int64_t used = ResidentBytes(pid_); used > limits_.memory_bytes) {
        EndTask();
        Kill();
        return Error(ErrorKind::kResourceExhausted, "FLEUVE_PYTHON_MEMORY_LIMIT",
                     "The Python worker was ended: it used " + Mebibytes(used) + " of memory, more than the " +
                         Mebibytes(limits_.memory_bytes) + " of fleuve.python.memoryLimit.");
      }
    }
    int timeout_ms = -1;
    if (limits_.memory_bytes > 0) {
      timeout_ms = static_cast<int>((next_memory_check_ns_ - now) / 1000000) + 1;
    }
    if (deadline_ns_ != 0) {
      const auto left_ms = static_cast<int>(std::min<std::int64_t>((deadline_ns_ - now) / 1000000 + 1, 3600000));
      timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
    }
    pollfd waiter{socket_, events, 0};
    const int ready = ::poll(&waiter, 1, timeout_ms);
    if (ready > 0) {
      return {};
    }
    if (ready < 0 && errno != EINTR) {
      return Error::Internal(std::string("poll: ") + std::strerror(errno));
    }
  }
}

Result<void> Worker::Send(std::uint8_t type, std::uint32_t channel, std::initializer_list<std::string_view> parts) {
  std::string head;
  head.push_back(static_cast<char>(type));
  AppendU32(head, channel);
  std::uint64_t length = 0;
  for (const std::string_view part : parts) {
    length += part.size();
  }
  AppendU64(head, length);
  std::vector<std::string_view> all = {head};
  all.insert(all.end(), parts.begin(), parts.end());
  for (std::string_view rest : all) {
    while (!rest.empty()) {
      const ssize_t sent = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        rest.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        FLEUVE_TRY(Wait(POLLOUT));
      } else if (errno != EINTR) {
        return Death();
      }
    }
  }
  return {};
}

Result<void> Worker::ReceiveBytes(char* out, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket_, out, size, 0);
    if (got > 0) {
      out += got;
      size -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      return Death();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      FLEUVE_TRY(Wait(POLLIN));
    } else if (errno != EINTR) {
      return Death();
    }
  }
  return {};
}

void Worker::RestartClock(std::int64_t task_ms) {
  const std::int64_t now = MonotonicNs();
  limits_.task_ms = task_ms;
  deadline_ns_ = limits_.task_ms > 0 ? now + limits_.task_ms * 1000000 : 0;
  next_memory_check_ns_ = now + kMemoryCheckNs;
}

Result<void> Worker::Begin(const Task& task, CancellationTokenPtr token) {
  FLEUVE_CHECK(is_free_);
  is_free_ = false;
  limits_ = task.limits;
  RestartClock(limits_.task_ms);
  token_ = std::move(token);
  if (token_) {
    token_key_ = token_->AddCallback([this] { Kill(); });
  }
  std::string text;
  Json header = task.header;
  header.Set("kind", task.kind);
  const std::string json = header.Dump();
  AppendU32(text, static_cast<std::uint32_t>(json.size()));
  text += json;
  AppendU32(text, static_cast<std::uint32_t>(task.blobs.size()));
  for (const std::string_view blob : task.blobs) {
    AppendU64(text, blob.size());
    text += blob;
  }
  return Send(kTask, 0, {text});
}

Result<Event> Worker::Next() {
  char head[kFrameHead];
  FLEUVE_TRY(ReceiveBytes(head, kFrameHead));
  const auto refuse = [this](const std::string& what) -> Result<Event> {
    EndTask();
    Kill();
    return Error::Internal("a Python worker sent a frame " + what);
  };
  Event event;
  event.channel = static_cast<std::uint32_t>(ReadLittle(head + 1, 4));
  const std::uint64_t length = ReadLittle(head + 5, 8);
  if (length > kLargestFrame) {
    return refuse("of " + std::to_string(length) + " bytes");
  }
  event.bytes.resize(length);
  FLEUVE_TRY(ReceiveBytes(event.bytes.data(), event.bytes.size()));
  switch (static_cast<std::uint8_t>(head[0])) {
    case kNeed:
      event.kind = EventKind::kNeedInput;
      return event;
    case kData:
      event.kind = EventKind::kOutput;
      return event;
    case kAsk: {
      event.kind = EventKind::kMessage;
      if (event.bytes.size() < 4) {
        return refuse("that is none");
      }
      const auto json_size = static_cast<std::size_t>(ReadLittle(event.bytes.data(), 4));
      FLEUVE_ASSIGN(event.message, Json::Parse(std::string_view(event.bytes).substr(4, json_size)));
      event.bytes.erase(0, 4 + json_size);
      return event;
    }
    case kEnd: {
      EndTask();
      FLEUVE_ASSIGN(event.message, Json::Parse(event.bytes));
      event.bytes.clear();
      event.kind = EventKind::kDone;
      is_free_ = true;
      return event;
    }
    case kRaised: {
      const bool cancelled = token_ && token_->cancelled();
      EndTask();
      if (cancelled) {
        return Error::Cancelled();
      }
      is_free_ = true;
      FLEUVE_ASSIGN(const Json raised, Json::Parse(event.bytes));
      Error error(ErrorKind::kInvalidArgument, "PYTHON_EXCEPTION", raised["traceback"].AsString());
      error = std::move(error).With("class", raised["class"].AsString()).With("text", raised["message"].AsString());
      if (const Json* condition = raised.Find("condition"); condition != nullptr && condition->is_string()) {
        error = std::move(error).With("condition", condition->AsString());
      }
      return error;
    }
    default:
      return refuse("that is none");
  }
}

Result<void> Worker::Give(std::string_view bytes, std::uint32_t channel) { return Send(kData, channel, {bytes}); }

Result<void> Worker::GiveEnd(std::uint32_t channel) { return Send(kEnd, channel, {}); }

Result<void> Worker::Reply(const Json& message, std::string_view bytes) {
  const std::string json = message.Dump();
  std::string size;
  AppendU32(size, static_cast<std::uint32_t>(json.size()));
  return Send(kAsk, 0, {size, json, bytes});
}

}  // namespace fleuve::python
