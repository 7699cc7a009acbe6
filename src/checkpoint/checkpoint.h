#pragma once

/// \file
/// The checkpoint of one running query: what it finds at start, what each batch adds, what must be synced when.
///
/// Records of our own lie in the hidden folder `.fleuve`: Spark does not look at it, and who lists a checkpoint sees
/// what Spark's documents name.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "checkpoint/entries.h"
#include "checkpoint/lock.h"
#include "checkpoint/log_folder.h"
#include "storage/object_store.h"

namespace fleuve::checkpoint {

/// What a restart finds in `offsets` and `commits`.
struct Recovered {
  /// Newest planned batch; nullopt: a new query.
  std::optional<BatchId> newest_planned;
  /// Newest batch with a commit entry.
  std::optional<BatchId> newest_committed;
  /// `offsets/<newest_planned>` and the one before it (absent for batch 0).
  OffsetEntry planned;
  std::optional<OffsetEntry> before;
  /// `commits/<newest_committed>`.
  CommitEntry committed;
  /// Files that were damaged and moved away, for the log.
  std::vector<std::string> moved_away;
};

/// Paths to sync.
struct Unsynced {
  std::vector<std::string> files;
  std::vector<std::string> folders;
  bool empty() const { return files.empty() && folders.empty(); }
};

/// Threads: one caller at a time.
class Checkpoint {
 public:
  /// Reads the query id from `<location>/metadata`; nullopt where the folder holds no query.
  /// STREAMING_CHECKPOINT_MISSING_METADATA_FILE where `offsets` or `commits` have entries and `metadata` is missing.
  static Result<std::optional<std::string>> ReadQueryId(const storage::Location& location);

  /// Locks the checkpoint and reads or makes its query id (`metadata`, synced with every new folder where `sync`).
  /// Errors: FLEUVE_CHECKPOINT_IN_USE, those of `ReadQueryId`, those of the store.
  static Result<std::unique_ptr<Checkpoint>> Open(const storage::Location& location, bool sync);

  const storage::Location& location() const { return location_; }
  const std::string& query_id() const { return query_id_; }
  std::string SourceFolder(int index) const { return location_.path + "/sources/" + std::to_string(index); }

  /// Reads the logs, removes left-overs of writers that died, moves a cut-off newest file away. The newest entries are
  /// added to `TakeUnsynced`: a run that died before it synced them left them in memory only.
  /// STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY for a new query in a used folder; `batch N doesn't exist`; the errors of
  /// `DecodeOffsets` and `DecodeCommit`.
  Result<Recovered> Recover();

  /// Writes `offsets/N` and `commits/N`; CONCURRENT_STREAM_LOG_UPDATE where they exist. What they made is added to
  /// `TakeUnsynced`.
  Result<void> WriteOffsets(BatchId batch, const OffsetEntry& entry);
  Result<void> WriteCommit(BatchId batch, const CommitEntry& entry);
  /// Everything written since the last call and not synced.
  Unsynced TakeUnsynced();
  bool has_unsynced() const { return !unsynced_.empty(); }
  /// Adds a record of a source (file log, ledger).
  void AddUnsynced(std::vector<std::string> files, std::vector<std::string> folders);

  /// Moves `offsets/<batch>`, which no sink has seen, to `.fleuve/damaged`: the batch will be planned anew.
  Result<void> DropPlanned(BatchId batch);
  /// `offsets/<batch>`.
  Result<OffsetEntry> ReadOffsets(BatchId batch);

  /// Removes entries of batches before `first_kept`; cheap: it remembers what it removed.
  Result<void> Purge(BatchId first_kept);

  /// A record of our own, `<checkpoint>/.fleuve/<name>`; nullopt where there is none.
  Result<std::optional<std::string>> ReadRecord(const std::string& name);
  /// Writes or replaces a record; it is added to `TakeUnsynced`.
  Result<void> WriteRecord(const std::string& name, const std::string& text);

  CheckpointLock& lock() { return *lock_; }

 private:
  Checkpoint(storage::Location location, std::string query_id, std::unique_ptr<CheckpointLock> lock)
      : location_(std::move(location)),
        query_id_(std::move(query_id)),
        lock_(std::move(lock)),
        offsets_(location_.store, location_.path + "/offsets"),
        commits_(location_.store, location_.path + "/commits") {}

  /// \param committed  the newest committed batch: offsets up to it were whole once, so damage there is an error.
  Result<void> DropCutOff(LogFolder& folder, std::vector<LogName>& names, bool is_offsets,
                          std::optional<std::int64_t> committed, Recovered& recovered);

  storage::Location location_;
  std::string query_id_;
  std::unique_ptr<CheckpointLock> lock_;
  LogFolder offsets_;
  LogFolder commits_;
  Unsynced unsynced_;
  std::int64_t oldest_offsets_ = 0;
  std::int64_t oldest_commits_ = 0;
};

}  // namespace fleuve::checkpoint
