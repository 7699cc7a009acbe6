#pragma once

/// \file
/// Where bytes live: whole objects under absolute paths. Local disk, memory, and a wrapper that injects faults.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fleuve::storage {

/// What a listing or a look-up says of one object.
struct ObjectMeta {
  /// Absolute path within the store, `/` separated, not percent-encoded, without a scheme.
  std::string path;
  std::int64_t size_bytes = 0;
  /// Milliseconds since the Unix epoch.
  std::int64_t modified_ms = 0;
  /// Changes when the object is replaced (local: inode, size and time in nanoseconds).
  std::string etag;
  bool is_directory = false;
};

enum class PutMode {
  kOverwrite,  ///< replaces atomically: readers see the old or the new object, whole
  kIfAbsent,   ///< kAlreadyExists where the path has an object; at most one of several callers wins
};

/// Objects under absolute paths. Threads: every method from any thread.
///
/// Durability: nothing here waits for the disk unless it says so. What must survive a power cut is given to `Sync`,
/// many paths at once, so that a batch waits for the disk twice and not eight times (docs/adr: two groups of syncs).
/// Errors of every method: kNotFound, kPermissionDenied, kResourceExhausted (disk full, quota), kTransient; a write may
/// also end as kOutcomeUnknown: read back before anything else. Messages name the path.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual Result<std::string> Get(std::string_view path) = 0;
  /// `length` bytes from `offset`; fewer at the object's end.
  virtual Result<std::string> GetRange(std::string_view path, std::int64_t offset, std::int64_t length) = 0;
  virtual Result<ObjectMeta> Head(std::string_view path) = 0;
  /// Creates missing parent folders.
  virtual Result<void> Put(std::string_view path, std::string_view bytes, PutMode mode) = 0;
  virtual Result<void> Delete(std::string_view path) = 0;
  /// Removes a folder and all below it; a missing folder is no error.
  virtual Result<void> DeleteAll(std::string_view path) = 0;
  virtual Result<void> CreateDirectory(std::string_view path) = 0;

  /// The direct children of a folder whose names sort after `start_after` (a name, not a path), sorted by name in
  /// byte order. A missing folder is kNotFound.
  virtual Result<std::vector<ObjectMeta>> List(std::string_view folder, std::string_view start_after = {}) = 0;
  /// All files below a folder, sorted by path.
  virtual Result<std::vector<ObjectMeta>> ListRecursive(std::string_view folder) = 0;

  /// Writes `bytes` beside `path` under a hidden name that no reader looks at; returns that name's full path. To be
  /// synced with `Sync` and then made visible with `CommitStaged`.
  virtual Result<std::string> Stage(std::string_view path, std::string_view bytes, std::string_view attempt) = 0;
  /// Makes a staged object visible under `path` unless one exists (kAlreadyExists; the staged object stays and may be
  /// committed elsewhere or deleted). On success the staged name is gone.
  virtual Result<void> CommitStaged(std::string_view staged, std::string_view path) = 0;

  /// Waits until the content of `files` and the names inside `folders` would survive a power cut; all side by side.
  /// A failed sync is never to be tried again on the same file: the caller's run ends.
  virtual Result<void> Sync(std::span<const std::string> files, std::span<const std::string> folders) = 0;

  /// True where this store is the local file system: its paths may be given to code that opens files by name.
  virtual bool is_local() const { return false; }
};

/// The machine's file system. Lives as long as the process.
std::shared_ptr<ObjectStore> LocalStore();

/// A path as the user wrote it, resolved.
struct Location {
  std::shared_ptr<ObjectStore> store;
  /// Absolute, normalised (no `.`, `..`, double or trailing `/`).
  std::string path;
};

/// Resolves `/abs`, `rel/ative` (against the working directory), `file:/abs`, `file:///abs`, `memory:/x` (a store of
/// this process, for tests and the memory catalog). Cloud addresses (s3, s3a, gs, abfss, wasbs, ...) are refused by
/// name with kUnsupported; any other scheme with kInvalidArgument. `file:` URIs may be percent-encoded.
Result<Location> Resolve(std::string_view uri);

/// `file:/abs/path` with percent-encoding where Hadoop's Path.toUri would have it: how Spark prints local paths.
std::string ToFileUri(std::string_view absolute_path);

}  // namespace fleuve::storage
