#pragma once

/// \file
/// The Delta source's parts: options, offsets, what one version holds, schema rules, the source itself.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connectors/folder_watch.h"
#include "connectors/sink.h"
#include "connectors/stream_relation.h"
#include "delta/log.h"
#include "delta/table_source.h"
#include "types/java_regex.h"

namespace fleuve::connectors::delta {

namespace dl = ::fleuve::delta;

/// A Delta table as the analyzer sees it: the facts of one version, not its files.
class DeltaStreamRelation final : public BasicStreamRelation {
 public:
  DeltaStreamRelation(types::Schema schema, std::string name, plan::Options options, storage::Location location,
                      dl::Metadata metadata, std::int64_t version)
      : BasicStreamRelation(std::move(schema), std::move(name), "delta", std::move(options)),
        location_(std::move(location)),
        metadata_(std::move(metadata)),
        version_(version) {}
  bool has_file_metadata() const override { return true; }
  const storage::Location& location() const { return location_; }
  /// Of the version that the query was analyzed with.
  const dl::Metadata& metadata() const { return metadata_; }
  std::int64_t version() const { return version_; }

 private:
  storage::Location location_;
  dl::Metadata metadata_;
  std::int64_t version_;
};

struct DeltaSourceOptions {
  /// nullopt: no limit.
  std::optional<std::int64_t> max_files = 1000;
  std::optional<std::int64_t> max_bytes;
  /// `latest`, or a version.
  bool start_at_latest = false;
  std::optional<std::int64_t> starting_version;
  std::optional<std::string> starting_timestamp;
  bool ignore_deletes = false;
  bool ignore_changes = false;
  bool skip_change_commits = false;
  bool fail_on_data_loss = true;
  /// maxFilesPerTrigger or maxBytesPerTrigger was given.
  bool has_limit = false;
  std::shared_ptr<const types::JavaRegex> exclude;
  bool has_start() const { return start_at_latest || starting_version || starting_timestamp; }
};

/// DELTA_ILLEGAL_OPTION and its kin; kUnsupported for what this build does not do (change feed, schema tracking,
/// event time order).
Result<DeltaSourceOptions> ParseDeltaSourceOptions(const plan::Options& options);
/// `true` or `false` in any letter case.
Result<bool> BooleanOption(const plan::Options& options, const char* name, bool fallback);

/// A position: everything up to and including it is done. `index` -1 is before everything of the version.
struct DeltaOffset {
  std::int64_t version = 0;
  std::int64_t index = -1;
  bool is_starting = false;

  std::string ToJson(const std::string& table_id) const;
  /// \param table_id  DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE where the offset is of another table.
  static Result<DeltaOffset> Parse(const std::string& text, const std::string& table_id);
  bool operator==(const DeltaOffset&) const = default;
  /// Order within one table.
  bool Before(const DeltaOffset& other) const {
    return version != other.version ? version < other.version : index < other.index;
  }
};

Error DifferentTable(const std::string& now, const std::string& before);

/// The numbered files of one version (or of the initial snapshot).
struct VersionFiles {
  std::vector<dl::AddFile> files;
  /// Bytes of files[i..].
  std::vector<std::int64_t> bytes_from;
  /// What forbids this commit; null where nothing does.
  std::optional<Error> failure;

  void Sum();
};

/// Is data written under `existing` readable under `read`? (delta-streaming 3.3)
bool IsReadable(const types::Schema& existing, const types::Schema& read);
/// True where between `before` and `after` (two states of one table) a column was renamed or dropped, or column mapping
/// was switched off.
bool HasRenameOrDrop(const dl::Metadata& before, const dl::Metadata& after);

class DeltaSource final : public Source {
 public:
  DeltaSource(std::shared_ptr<const DeltaStreamRelation> relation, DeltaSourceOptions options, SourceContext context,
              dl::DeltaLogPtr log, dl::SnapshotPtr at_start, types::Schema table_schema);
  ~DeltaSource() override;

  const types::Schema& schema() const override { return relation_->schema(); }
  std::string description() const override;
  Result<std::optional<Offset>> InitialOffset() override { return std::optional<Offset>(); }
  Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>& start, Admission admission) override;
  Result<void> PrepareForAvailableNow() override;
  bool offsets_stand_alone() const override { return true; }
  Result<void> Recover(const std::optional<Offset>& start, const std::optional<Offset>& end) override;
  Result<BatchInput> Read(const std::optional<Offset>& start, const Offset& end) override;
  DurableRecords TakeDurableRecords() override { return std::exchange(records_, {}); }
  Result<void> Commit(const Offset& end) override;
  std::map<std::string, std::string> Metrics(const std::optional<Offset>& latest_consumed) override;
  bool SetDataListener(std::function<void()> callback) override;
  void Stop() override;

 private:
  /// Where a new query begins: in the snapshot of a version, or before the changes of one.
  struct Start {
    std::int64_t version = 0;
    bool is_snapshot = true;
  };
  struct Budget {
    std::optional<std::int64_t> files;
    std::optional<std::int64_t> bytes;
    bool Take(std::int64_t size);
  };

  Result<Start> ResolveStart(std::int64_t latest);
  Result<std::int64_t> VersionOfTimestamp(const std::string& text);
  Result<void> RecordStart(const Start& start);
  Result<std::optional<Start>> ReadRecordedStart();
  /// The start of a batch 0 that is run again.
  Result<Start> StartOfReplay(const DeltaOffset& end);
  Result<void> CheckStartSchema(std::int64_t version);
  Result<void> CheckMetadata(const dl::Metadata& metadata, std::int64_t version);
  Result<std::shared_ptr<const VersionFiles>> SnapshotFiles(std::int64_t version);
  /// The files of commit `version`; its `failure` is not raised. kNotFound where the commit is missing.
  Result<std::shared_ptr<const VersionFiles>> CommitFiles(std::int64_t version);
  /// As `CommitFiles`, raising its failure; a missing commit is an error or, without failOnDataLoss, the next one that
  /// exists (`*version` moves). Null: there is none up to `latest`.
  Result<std::shared_ptr<const VersionFiles>> OpenCommit(std::int64_t* version, std::int64_t latest);
  Result<std::optional<DeltaOffset>> Walk(const DeltaOffset& from, Budget budget, std::int64_t last_version);
  Result<dl::SnapshotPtr> Latest();
  void CountBacklog(const DeltaOffset& end);
  void Forget(std::int64_t version);

  const std::shared_ptr<const DeltaStreamRelation> relation_;
  const DeltaSourceOptions options_;
  const SourceContext context_;
  const dl::DeltaLogPtr log_;
  const std::string table_id_;
  /// The metadata the query reads with, and the version it was known at.
  const dl::Metadata metadata_;
  const std::int64_t start_version_;
  const types::Schema read_schema_;
  std::optional<Start> start_;
  bool start_schema_checked_ = false;
  DurableRecords records_;
  std::optional<std::int64_t> available_now_version_;
  bool available_now_ = false;

  std::int64_t snapshot_files_version_ = -1;
  std::shared_ptr<const VersionFiles> snapshot_files_;
  std::map<std::int64_t, std::shared_ptr<const VersionFiles>> commits_;

  // Backlog, for progress.
  std::atomic<std::int64_t> latest_known_{-1};
  std::int64_t listed_up_to_ = -1;
  bool snapshot_listed_ = false;
  std::int64_t newly_listed_ = 0;
  bool backlog_known_ = false;
  /// A batch of this run left something behind, or the user set a limit: only then progress tells of a backlog.
  bool had_backlog_ = false;
  std::int64_t backlog_files_ = 0;
  std::int64_t backlog_bytes_ = 0;

  std::unique_ptr<FolderWatch> watch_;
  std::int64_t listener_key_ = 0;
};

}  // namespace fleuve::connectors::delta
