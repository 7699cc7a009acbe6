#include "checkpoint/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/ids.h"
#include "base/json.h"

namespace fleuve::checkpoint {

namespace {

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

std::string OwnerText(const std::string& token) {
  Json owner;
  owner.Set("host", HostName()).Set("pid", static_cast<std::int64_t>(::getpid())).Set("token", token);
  return owner.Dump();
}

Error InUse(const std::string& checkpoint, const std::string& owner_text) {
  std::string who = "another process";
  if (auto owner = Json::Parse(owner_text); owner.ok() && owner->Find("pid") != nullptr) {
    who = "process " + std::to_string((*owner)["pid"].AsInt()) + " on host " + (*owner)["host"].AsString();
  }
  return Error(ErrorKind::kConflict, "FLEUVE_CHECKPOINT_IN_USE",
               "The checkpoint " + checkpoint + " is in use by " + who +
                   ". Stop that query first, or give this one another checkpoint location.");
}

/// flock(2) on the lock file: the system gives it back however the process ends.
class LocalLock final : public CheckpointLock {
 public:
  explicit LocalLock(int fd) : fd_(fd) {}
  ~LocalLock() override { ::close(fd_); }

 private:
  int fd_;
};

/// Put-if-absent, for stores that only this process sees (memory): the object is removed at the end.
class ObjectLock final : public CheckpointLock {
 public:
  ObjectLock(std::shared_ptr<storage::ObjectStore> store, std::string path, std::string text)
      : store_(std::move(store)), path_(std::move(path)), text_(std::move(text)) {}
  ~ObjectLock() override {
    if (auto held = StillHeld(); held.ok() && *held) {
      store_->Delete(path_).IgnoreBecause("the lock may already be gone");
    }
  }
  Result<bool> StillHeld() override {
    auto text = store_->Get(path_);
    if (!text.ok() && text.error().kind() != ErrorKind::kNotFound) {
      return std::move(text).error();
    }
    return text.ok() && *text == text_;
  }

 private:
  std::shared_ptr<storage::ObjectStore> store_;
  std::string path_;
  std::string text_;
};

Error SystemError(const std::string& what, const std::string& path, int code) {
  const ErrorKind kind = code == EACCES || code == EPERM || code == EROFS ? ErrorKind::kPermissionDenied
                         : code == ENOSPC || code == EDQUOT               ? ErrorKind::kResourceExhausted
                                                                          : ErrorKind::kTransient;
  return Error(kind, "FLEUVE_STORAGE", what + " " + path + ": " + std::strerror(code));
}

}  // namespace

Result<std::unique_ptr<CheckpointLock>> LockCheckpoint(const storage::Location& checkpoint) {
  const std::string folder = checkpoint.path + "/.fleuve";
  const std::string path = folder + "/lock";
  FLEUVE_TRY(checkpoint.store->CreateDirectory(folder));
  const std::string text = OwnerText(NewUuid());
  if (!checkpoint.store->is_local()) {
    auto put = checkpoint.store->Put(path, text, storage::PutMode::kIfAbsent);
    if (!put.ok()) {
      if (put.error().kind() != ErrorKind::kAlreadyExists) {
        return std::move(put).error();
      }
      FLEUVE_ASSIGN(const std::string owner, checkpoint.store->Get(path));
      return InUse(checkpoint.path, owner);
    }
    return std::unique_ptr<CheckpointLock>(std::make_unique<ObjectLock>(checkpoint.store, path, text));
  }
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    return SystemError("cannot open the lock file", path, errno);
  }
  auto lock = std::make_unique<LocalLock>(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      char buffer[512] = {};
      const ssize_t length = ::pread(fd, buffer, sizeof(buffer) - 1, 0);
      return InUse(checkpoint.path, std::string(buffer, length > 0 ? static_cast<std::size_t>(length) : 0));
    }
    return SystemError("cannot lock", path, errno);
  }
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return SystemError("cannot write", path, errno);
  }
  return std::unique_ptr<CheckpointLock>(std::move(lock));
}

}  // namespace fleuve::checkpoint
