// The machine's file system as an object store.
//
// Invariants: (1) a reader never sees a half-written object: bytes go to a hidden temporary name and are renamed or
// linked; (2) put-if-absent and CommitStaged use link(2), which refuses an existing name atomically; (3) nothing waits
// for the disk but `Sync`.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/failpoint.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "storage/object_store.h"

namespace fleuve::storage {
namespace {

/// The Error of a failed system call on `path`.
Error FromErrno(int code, std::string_view what, std::string_view path) {
  const std::string message = std::string(what) + " " + std::string(path) + ": " + std::strerror(code);
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND", message).With("path", std::string(path));
    case EEXIST:
      return Error(ErrorKind::kAlreadyExists, "", message);
    case EACCES:
    case EPERM:
    case EROFS:
      return Error(ErrorKind::kPermissionDenied, "FLEUVE_PERMISSION_DENIED",
                   message + ". Give the user that runs fleuve the right to it.");
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Error(ErrorKind::kResourceExhausted, "FLEUVE_DISK_FULL", message + ". Free some space and start again.");
    case EMFILE:
    case ENFILE:
      return Error(ErrorKind::kResourceExhausted, "FLEUVE_TOO_MANY_OPEN_FILES", message);
    case EINTR:
    case EAGAIN:
      return Error(ErrorKind::kTransient, "", message);
    default:
      return Error(ErrorKind::kCorrupt, "FLEUVE_IO_ERROR", message);
  }
}

/// An open file, closed once.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// Closes now and says whether that went well (a full disk may be told only here).
  int Close() {
    const int failed = ::close(fd_);
    fd_ = -1;
    return failed;
  }

 private:
  int fd_;
};

std::string ParentOf(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == path.npos ? "/" : std::string(path.substr(0, slash));
}

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

ObjectMeta MetaOf(std::string path, const struct stat& status) {
  ObjectMeta meta;
  meta.path = std::move(path);
  meta.size_bytes = status.st_size;
  meta.modified_ms = static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1000 + status.st_mtim.tv_nsec / 1000000;
  meta.etag = std::to_string(status.st_ino) + "-" + std::to_string(status.st_size) + "-" +
              std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
  meta.is_directory = S_ISDIR(status.st_mode);
  return meta;
}

class LocalObjectStore final : public ObjectStore {
 public:
  bool is_local() const override { return true; }

  Result<std::string> Get(std::string_view path) override {
    const std::string name(path);
    const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
      return FromErrno(errno, "cannot open", path);
    }
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) {
      return FromErrno(errno, "cannot look at", path);
    }
    if (S_ISDIR(status.st_mode)) {
      return FromErrno(EISDIR, "cannot read", path);
    }
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t filled = 0;
    while (true) {
      if (filled == bytes.size()) {
        bytes.resize(bytes.size() + 4096);  // a file that grew, or one of /proc without a size
      }
      const ssize_t n = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
      if (n < 0) {
        if (errno == EINTR) {
          continue;
        }
        return FromErrno(errno, "cannot read", path);
      }
      if (n == 0) {
        break;
      }
      filled += static_cast<std::size_t>(n);
    }
    bytes.resize(filled);
    return bytes;
  }

  Result<std::string> GetRange(std::string_view path, std::int64_t offset, std::int64_t length) override {
    const std::string name(path);
    const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
      return FromErrno(errno, "cannot open", path);
    }
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) {
      return FromErrno(errno, "cannot look at", path);
    }
    // No more than there is, whatever a broken file elsewhere asks for.
    const std::int64_t there = std::max<std::int64_t>(0, static_cast<std::int64_t>(status.st_size) - offset);
    std::string bytes(static_cast<std::size_t>(std::min(length, there)), '\0');
    std::size_t filled = 0;
    while (filled < bytes.size()) {
      const ssize_t n = ::pread(file.get(), bytes.data() + filled, bytes.size() - filled,
                                static_cast<off_t>(offset) + static_cast<off_t>(filled));
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n < 0) {
        return FromErrno(errno, "cannot read", path);
      }
      if (n == 0) {
        break;
      }
      filled += static_cast<std::size_t>(n);
    }
    bytes.resize(filled);
    return bytes;
  }

  Result<ObjectMeta> Head(std::string_view path) override {
    struct stat status{};
    if (::stat(std::string(path).c_str(), &status) != 0) {
      return FromErrno(errno, "cannot look at", path);
    }
    return MetaOf(std::string(path), status);
  }

  Result<void> Put(std::string_view path, std::string_view bytes, PutMode mode) override {
    FLEUVE_ASSIGN(const std::string staged, Stage(path, bytes, NewUuid()));
    if (mode == PutMode::kIfAbsent) {
      auto linked = CommitStaged(staged, path);
      if (!linked.ok()) {
        ::unlink(staged.c_str());
      }
      return linked;
    }
    if (::rename(staged.c_str(), std::string(path).c_str()) != 0) {
      const int code = errno;
      ::unlink(staged.c_str());
      return FromErrno(code, "cannot replace", path);
    }
    return {};
  }

  Result<void> Delete(std::string_view path) override {
    if (::unlink(std::string(path).c_str()) != 0) {
      return FromErrno(errno, "cannot delete", path);
    }
    return {};
  }

  Result<void> DeleteAll(std::string_view path) override {
    std::error_code code;
    std::filesystem::remove_all(std::filesystem::path(path), code);
    if (code && code != std::errc::no_such_file_or_directory) {
      return FromErrno(code.value(), "cannot delete", path);
    }
    return {};
  }

  Result<void> CreateDirectory(std::string_view path) override {
    std::error_code code;
    std::filesystem::create_directories(std::filesystem::path(path), code);
    if (code) {
      return FromErrno(code.value(), "cannot create the folder", path);
    }
    return {};
  }

  Result<std::vector<ObjectMeta>> List(std::string_view folder, std::string_view start_after) override {
    std::vector<ObjectMeta> found;
    FLEUVE_TRY(ListInto(folder, start_after, found));
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return found;
  }

  Result<std::vector<ObjectMeta>> ListRecursive(std::string_view folder) override {
    std::vector<ObjectMeta> files;
    std::vector<std::string> pending = {std::string(folder)};
    while (!pending.empty()) {
      const std::string next = std::move(pending.back());
      pending.pop_back();
      std::vector<ObjectMeta> children;
      auto listed = ListInto(next, {}, children);
      if (!listed.ok() && (next == folder || listed.error().kind() != ErrorKind::kNotFound)) {
        return std::move(listed).error();
      }
      for (auto& child : children) {
        if (child.is_directory) {
          pending.push_back(child.path);
        } else {
          files.push_back(std::move(child));
        }
      }
    }
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return files;
  }

  Result<std::string> Stage(std::string_view path, std::string_view bytes, std::string_view attempt) override {
    const std::string parent = ParentOf(path);
    const std::string staged = parent + "/." + std::string(NameOf(path)) + "." + std::string(attempt) + ".tmp";
    int fd = ::open(staged.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ENOENT) {
      FLEUVE_TRY(CreateDirectory(parent));
      fd = ::open(staged.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    Descriptor file(fd);
    if (file.get() < 0) {
      return FromErrno(errno, "cannot write", path);
    }
    std::size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t n = ::write(file.get(), bytes.data() + written, bytes.size() - written);
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n < 0) {
        const int code = errno;
        ::unlink(staged.c_str());
        return FromErrno(code, "cannot write", path);
      }
      written += static_cast<std::size_t>(n);
    }
    if (file.Close() != 0) {
      const int code = errno;
      ::unlink(staged.c_str());
      return FromErrno(code, "cannot write", path);
    }
    return staged;
  }

  Result<void> CommitStaged(std::string_view staged, std::string_view path) override {
    const std::string from(staged);
    const std::string to(path);
    if (::link(from.c_str(), to.c_str()) == 0) {
      ::unlink(from.c_str());
      return {};
    }
    if (errno == EPERM || errno == EOPNOTSUPP) {  // a file system without hard links
      if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
        return {};
      }
    }
    return FromErrno(errno, "cannot create", path);
  }

  Result<void> Sync(std::span<const std::string> files, std::span<const std::string> folders) override {
    std::vector<Result<void>> results(files.size() + folders.size());
    std::vector<std::function<void()>> tasks;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string& path = i < files.size() ? files[i] : folders[i - files.size()];
      tasks.emplace_back([&results, i, &path] { results[i] = SyncOne(path); });
    }
    // The waits overlap on the disk, so a few threads beyond the cores pay off.
    static ThreadPool pool(6);
    pool.RunAll(std::move(tasks));
    for (auto& result : results) {
      FLEUVE_TRY(std::move(result));
    }
    return {};
  }

 private:
  static Result<void> SyncOne(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
      return FromErrno(errno, "cannot sync", path);
    }
    if (::fsync(file.get()) != 0) {
      return FromErrno(errno, "cannot sync", path);
    }
    return {};
  }

  static Result<void> ListInto(std::string_view folder, std::string_view start_after, std::vector<ObjectMeta>& out) {
    DIR* directory = ::opendir(std::string(folder).c_str());
    if (directory == nullptr) {
      return FromErrno(errno, "cannot list", folder);
    }
    const int fd = ::dirfd(directory);
    const std::string prefix = folder == "/" ? "/" : std::string(folder) + "/";
    while (const dirent* entry = ::readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || name <= start_after) {
        continue;
      }
      struct stat status{};
      if (::fstatat(fd, entry->d_name, &status, 0) != 0) {
        continue;  // it vanished, or a dangling link
      }
      out.push_back(MetaOf(prefix + std::string(name), status));
    }
    ::closedir(directory);
    return {};
  }
};

}  // namespace

std::shared_ptr<ObjectStore> LocalStore() {
  static const std::shared_ptr<ObjectStore> store = std::make_shared<LocalObjectStore>();
  return store;
}

}  // namespace fleuve::storage
