#pragma once

/// \file
/// One table's log: opening, the latest snapshot kept up to date commit by commit, older versions, single commits.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "delta/actions.h"
#include "delta/parquet.h"
#include "delta/snapshot.h"
#include "storage/object_store.h"

namespace fleuve {
class ThreadPool;
}

namespace fleuve::delta {

/// How far "committed" goes: through a power cut, or through the death of the process (Spark's level).
enum class Durability { kStrict, kProcess };

/// What every log of a process shares. Outlives the logs.
struct LogContext {
  std::shared_ptr<ParquetReader> parquet_reader;  ///< null: tables with Parquet checkpoints cannot be loaded
  std::shared_ptr<ParquetWriter> parquet_writer;  ///< null: no checkpoints are written
  Clock* clock = Clock::System();
  Durability durability = Durability::kStrict;
};

/// How a checkpoint is written, as the session that causes it says.
struct CheckpointShape {
  /// File actions in one part; 0 = one part whatever the size.
  std::int64_t part_rows = 0;
  /// v2: the file on top is Parquet, not JSON.
  bool parquet_top = false;
};

/// One commit.
struct Commit {
  std::int64_t version = 0;
  /// Raw time of the commit in milliseconds: in-commit timestamp, else the file's modification time.
  std::int64_t timestamp_ms = 0;
  std::int64_t size_bytes = 0;
  std::vector<Action> actions;
};

/// A version and its time; times rise strictly with versions.
struct VersionTime {
  std::int64_t version = 0;
  std::int64_t timestamp_ms = 0;
};

/// Threads: every method from any thread; refreshes of one log run one at a time.
class DeltaLog : public std::enable_shared_from_this<DeltaLog> {
 public:
  virtual ~DeltaLog() = default;

  virtual const storage::Location& location() const = 0;
  virtual const LogContext& context() const = 0;

  /// True where the folder has a Delta log with a commit or a checkpoint.
  virtual Result<bool> Exists() = 0;
  /// The newest snapshot. Known v: asks for v+1 by name; lists only when cold or when v was replaced.
  /// FLEUVE_COMMIT_REPLACED, once, where another writer has renamed its commit over one of this process.
  /// DELTA_TABLE_NOT_FOUND (kNotFound) where no log is; DELTA_VERSIONS_NOT_CONTIGUOUS, DELTA_LOG_FILE_NOT_FOUND,
  /// DELTA_UNSUPPORTED_FEATURES_FOR_READ and the like otherwise.
  virtual Result<SnapshotPtr> Latest() = 0;
  /// The last snapshot loaded, without a look at the store; null when cold.
  virtual SnapshotPtr Cached() = 0;
  /// The snapshot of a version. DELTA_VERSION_NOT_FOUND where it cannot be rebuilt.
  virtual Result<SnapshotPtr> At(std::int64_t version) = 0;

  /// Commit `version`; kNotFound (DELTA_LOG_FILE_NOT_FOUND) where its file is missing.
  virtual Result<Commit> ReadCommit(std::int64_t version) = 0;
  /// Versions with a commit file from `start` on and their adjusted times (S-19), in one listing.
  virtual Result<std::vector<VersionTime>> CommitsFrom(std::int64_t start) = 0;
  /// First version with a commit file. \param recreatable  true: whose snapshot can be rebuilt too.
  virtual Result<std::int64_t> EarliestVersion(bool recreatable) = 0;
  /// Which version `versionAsOf`-style time travel by time means: the last commit at or before. Errors
  /// DELTA_TIMESTAMP_GREATER_THAN_COMMIT (unless `can_return_last`), DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
  /// (unless `can_return_earliest`).
  virtual Result<VersionTime> VersionAtTime(std::int64_t timestamp_ms, bool can_return_last, bool must_be_recreatable,
                                            bool can_return_earliest = false) = 0;

  /// Called after our own commit of `version` with its actions, so that `Latest` need not read them back.
  /// \param checkpoint  as in `Operation`, for a checkpoint that is due after this commit.
  virtual void Committed(std::int64_t version, std::int64_t timestamp_ms, const std::string& etag,
                         const std::vector<Action>& actions, const CheckpointShape& checkpoint) = 0;
  /// FLEUVE_COMMIT_REPLACED: `there` stands where a commit of this process was. Also in the process's log.
  virtual Error CommitWasReplaced(const Commit& there) = 0;
  /// Called in the committing thread after each commit made through this process. Returns a key.
  virtual std::int64_t AddCommitListener(std::function<void(std::int64_t version)> listener) = 0;
  virtual void RemoveCommitListener(std::int64_t key) = 0;

  /// Writes a checkpoint of the newest snapshot now (classic or v2 as `delta.checkpointPolicy` says).
  virtual Result<void> Checkpoint(const CheckpointShape& shape) = 0;
  /// Reads the whole log: every commit, and every checkpoint against what the commits before it give. One text per
  /// thing that is wrong.
  virtual Result<std::vector<std::string>> Check() = 0;
  /// Waits for a checkpoint that runs in the background, unless the table is so large (more than 20,000 files) that it
  /// takes seconds. For tests and orderly ends; the registry's end waits for every checkpoint.
  virtual void WaitForBackground() = 0;
};

using DeltaLogPtr = std::shared_ptr<DeltaLog>;

/// All logs of a process by location; outlives the logs it gave out, so that readers and writers of one table share one
/// snapshot. Threads: any.
class LogRegistry {
 public:
  explicit LogRegistry(LogContext context);
  ~LogRegistry();
  /// The log of a table folder; nothing is read yet. A log unused for long is dropped.
  DeltaLogPtr Open(const storage::Location& location);
  const LogContext& context() const { return context_; }

 private:
  struct Entry;
  LogContext context_;
  std::shared_ptr<ThreadPool> background_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;
};

}  // namespace fleuve::delta
