#pragma once

/// \file
/// One optimistic commit: what was read, what shall change, the conflict check, and the two phases of becoming durable.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "delta/log.h"
#include "plan/expr.h"

namespace fleuve::delta {

/// What the commit says of itself.
struct Operation {
  /// `WRITE`, `STREAMING UPDATE`, `DELETE`, ...
  std::string name;
  /// Object of strings and nulls in Spark's order: {"mode":"Append","partitionBy":"[]"}.
  Json parameters{Json::Object{}};
  StringMap metrics{};
  std::optional<std::string> user_metadata{};
  /// `commitInfo.tags`; none where empty.
  StringMap tags{};
  /// Attempt id (`commitInfo.txnId`); empty = a new one.
  std::string txn_id{};
  /// `commitInfo.fleuve`; null = none.
  Json fleuve{};
  /// Overrides what is computed (all file actions add, nothing was read).
  std::optional<bool> is_blind_append{};
  /// Of a checkpoint that follows the commit.
  CheckpointShape checkpoint{};
};

/// A commit written under a hidden name. Owned by the transaction that made it.
struct StagedCommit {
  /// To be synced (with the data files) before `CommitStaged`, together with `folders`.
  std::string file;
  /// The log's folder; for a new table the table's folder and its parent too.
  std::vector<std::string> folders;
  std::int64_t version = 0;
  std::string txn_id;
};

struct CommitResult {
  std::int64_t version = 0;
  /// The snapshot after the commit where it is known without reading (else ask the log).
  SnapshotPtr snapshot;
};

/// Threads: one caller at a time. A transaction commits at most once.
class Transaction {
 public:
  /// \param snapshot  what was read; null: the table does not exist yet and this commit creates version 0.
  Transaction(DeltaLogPtr log, SnapshotPtr snapshot);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  const SnapshotPtr& snapshot() const { return snapshot_; }

  /// The result depends on every row of the table.
  void ReadWholeTable() { read_whole_table_ = true; }
  /// The result depends on these files (a removed one is a conflict) and on every row that matches the partition
  /// filters (none: every row). \param columns  one attribute per field of the snapshot's schema, for the filters.
  /// \param rows_alone  what becomes of a row depends on that row alone, so that on tables that mark rows and track
  /// them, commits that mark other rows of these files are no conflict.
  void ReadFiles(const std::vector<AddFile>& files, std::vector<plan::ExprPtr> filters,
                 std::vector<plan::Attribute> columns, bool rows_alone = false);
  /// The result depends on the transaction version of this application.
  void ReadApp(std::string app_id) { read_apps_.push_back(std::move(app_id)); }
  /// New metadata and protocol of this commit (written before the other actions). The protocol is raised as the
  /// metadata needs.
  Result<void> UpdateMetadata(Metadata metadata);
  void UpdateProtocol(Protocol protocol) { new_protocol_ = std::move(protocol); }
  const Metadata& metadata() const;
  const Protocol& protocol() const;

  /// Phase one: checks the actions, writes the commit under a hidden name in `_delta_log` (created where missing).
  /// Nothing is synced.
  Result<StagedCommit> Stage(std::vector<Action> actions, Operation operation);
  /// Phase two: makes it visible; a lost race is checked for conflicts and tried at the next version; an unknown
  /// outcome is settled by reading back. \param sync  ends with a sync of `_delta_log` in strict durability; false: the
  /// caller syncs that folder before the commit counts. Errors: kConflict with DELTA_CONCURRENT_APPEND,
  /// DELTA_CONCURRENT_DELETE_READ, DELTA_CONCURRENT_DELETE_DELETE, DELTA_METADATA_CHANGED, DELTA_PROTOCOL_CHANGED,
  /// DELTA_CONCURRENT_TRANSACTION: the staged file is gone, begin anew; FLEUVE_COMMIT_REPLACED where another
  /// writer has renamed its commit over ours.
  Result<CommitResult> CommitStaged(bool sync = true);
  /// Gives a staged commit up.
  void Abandon();

  /// Both phases: stages, syncs `data_files`, their folders and the staged file side by side, commits.
  /// \param data_files  absolute paths of new files. \param data_folders  folders that gained a name.
  Result<CommitResult> Commit(std::vector<Action> actions, Operation operation,
                              const std::vector<std::string>& data_files = {},
                              const std::vector<std::string>& data_folders = {});

 private:
  /// What became of the race for `version`: ours after all, or the next version to try.
  struct Race {
    bool ours = false;
    std::int64_t version = 0;
  };
  Result<Race> Settle(std::int64_t version);
  Result<void> CheckConflict(const fleuve::delta::Commit& winner);
  Result<void> CheckAdded(const fleuve::delta::Commit& winner) const;
  Result<void> CheckRemoved(const fleuve::delta::Commit& winner, const RemoveFile& removed);
  /// True where commits that mark other rows of the same files are no conflict.
  bool ComparesRows() const;
  Result<void> CheckActions(const std::vector<Action>& actions) const;
  Result<void> Write(std::int64_t version);
  CommitInfo MakeInfo(std::int64_t version);
  /// \param staged_etag  of what was staged: the commit that stands there now must be that.
  Result<CommitResult> Finish(std::int64_t version, bool sync, const std::string& staged_etag);

  DeltaLogPtr log_;
  SnapshotPtr snapshot_;
  bool read_whole_table_ = false;
  struct ReadSet {
    std::vector<plan::ExprPtr> filters;
    std::vector<plan::Attribute> columns;
  };
  std::vector<ReadSet> read_sets_;
  std::vector<std::string> read_paths_;
  bool rows_alone_ = true;
  /// Vectors written anew behind those of faster commits, to be synced before the commit.
  std::vector<std::string> followed_vectors_;
  std::vector<std::string> read_apps_;
  std::optional<Metadata> new_metadata_;
  std::optional<Protocol> new_protocol_;

  std::vector<Action> actions_;
  Operation operation_;
  /// What was written: commitInfo, metadata, protocol, then `actions_`.
  std::vector<Action> lines_;
  std::optional<StagedCommit> staged_;
  std::int64_t winner_timestamp_ = 0;
  /// Highest row id that winners of lost races gave out.
  std::int64_t winner_row_id_ = -1;
};

}  // namespace fleuve::delta
