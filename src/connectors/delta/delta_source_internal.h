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

#include "connectors/delta/schema_log_internal.h"
#include "connectors/folder_watch.h"
#include "connectors/sink.h"
#include "connectors/stream_relation.h"
#include "delta/log.h"
#include "delta/table_source.h"
#include "tables/change_scans.h"
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
  /// Sets the schema tracking log that the analysis looked at, and the entry it used (-1: it had none).
  void Track(storage::Location folder, std::int64_t entry) {
    tracking_ = std::move(folder);
    tracked_entry_ = entry;
  }
  const std::optional<storage::Location>& tracking() const { return tracking_; }
  std::int64_t tracked_entry() const { return tracked_entry_; }
  const storage::Location& location() const { return location_; }
  /// Of the version that the query was analyzed with.
  const dl::Metadata& metadata() const { return metadata_; }
  std::int64_t version() const { return version_; }

 private:
  storage::Location location_;
  dl::Metadata metadata_;
  std::int64_t version_;
  std::optional<storage::Location> tracking_;
  std::int64_t tracked_entry_ = -1;
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
  bool read_change_feed = false;
  /// nullopt: as the session setting says.
  std::optional<bool> with_event_time_order;
  /// maxFilesPerTrigger or maxBytesPerTrigger was given.
  bool has_limit = false;
  std::shared_ptr<const types::JavaRegex> exclude;
  bool has_start() const { return start_at_latest || starting_version || starting_timestamp; }
};

/// DELTA_ILLEGAL_OPTION and its kin.
Result<DeltaSourceOptions> ParseDeltaSourceOptions(const plan::Options& options);
/// `true` or `false` in any letter case.
Result<bool> BooleanOption(const plan::Options& options, const char* name, bool fallback);
/// readChangeFeed, or its older name.
Result<bool> ReadsChangeFeed(const plan::Options& options);
/// `<location>/_schema_log_<table id>[_<tracking id>]`; nullopt where no schema tracking is asked for.
Result<std::optional<storage::Location>> TrackingFolder(const plan::Options& options, const std::string& table_id);

/// A commit whose metadata or protocol differ from the tracked ones: it must be applied before its files are read.
constexpr std::int64_t kBarrier = -20;
/// The barrier has been passed once; the tracked metadata may still have to be replaced.
constexpr std::int64_t kPastBarrier = -19;

/// A position: everything up to and including it is done. `index` -1 is before everything of the version.
struct DeltaOffset {
  std::int64_t version = 0;
  std::int64_t index = -1;
  bool is_starting = false;
  /// In the initial snapshot in event-time order: rows up to this millisecond are done.
  std::optional<std::int64_t> event_time_ms = std::nullopt;

  std::string ToJson(const std::string& table_id) const;
  /// \param table_id  DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE where the offset is of another table.
  static Result<DeltaOffset> Parse(const std::string& text, const std::string& table_id);
  bool operator==(const DeltaOffset&) const = default;
  bool is_barrier() const { return index == kBarrier || index == kPastBarrier; }
  /// The first file of the version that is not done.
  std::int64_t next_file() const { return index < 0 ? 0 : index + 1; }
};

Error DifferentTable(const std::string& now, const std::string& before);

/// The numbered files of one version (or of the initial snapshot).
struct VersionFiles {
  std::vector<dl::AddFile> files;
  /// Of a commit in a change feed: what the rows of each file are; empty otherwise.
  std::vector<tables::ChangeFile> changes;
  /// A change feed reads these files in one batch or not at all; `has_change_files`: because they are change files.
  bool is_unit = false;
  bool has_change_files = false;
  /// Metadata or protocol change here: what the tracked ones become.
  std::optional<TrackedMetadata> barrier;
  /// Bytes of files[i..].
  std::vector<std::int64_t> bytes_from;
  /// What forbids this commit; null where nothing does.
  std::optional<Error> failure;

  void Sum();
  std::int64_t count() const { return static_cast<std::int64_t>(changes.empty() ? files.size() : changes.size()); }
  const dl::AddFile& file(std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    return changes.empty() ? files[at] : changes[at].file;
  }
};

/// Bounds of a file's event times.
struct EventBounds {
  /// nullopt: no row has a time.
  std::optional<std::int64_t> low_micros;
  std::optional<std::int64_t> high_micros;
  bool may_have_null = true;
};

/// A type change that readers of the wider type can follow (Delta's type widening).
bool IsWidening(const types::DataType& from, const types::DataType& to);
/// True where a field that both have was widened in one of them.
bool HasWidening(const types::DataType& a, const types::DataType& b);
Error SchemaChangedWithVersion(bool with_start, std::int64_t version, const types::Schema& read,
                               const types::Schema& data);
/// Is data written under `existing` readable under `read`? (delta-streaming 3.3)
bool IsReadable(const types::Schema& existing, const types::Schema& read);
/// True where between `before` and `after` (two states of one table) a column was renamed or dropped, or column mapping
/// was switched off.
bool HasRenameOrDrop(const dl::Metadata& before, const dl::Metadata& after);

class DeltaSource final : public Source {
 public:
  DeltaSource(std::shared_ptr<const DeltaStreamRelation> relation, DeltaSourceOptions options, SourceContext context,
              dl::DeltaLogPtr log, dl::SnapshotPtr at_start, types::Schema table_schema,
              std::optional<SchemaLog> schema_log);
  ~DeltaSource() override;

  const types::Schema& schema() const override { return relation_->schema(); }
  std::string description() const override;
  Result<std::optional<Offset>> InitialOffset() override { return std::optional<Offset>(); }
  Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>& start, Admission admission) override;
  Result<void> PrepareForAvailableNow() override;
  bool offsets_stand_alone() const override { return true; }
  Result<void> Recover(const std::optional<Offset>& start, const std::optional<Offset>& end) override;
  Result<void> BatchPlanned(const std::optional<Offset>& start) override;
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
    bool is_used_up() const { return (files && *files <= 0) || (bytes && *bytes <= 0); }
    bool is_limited() const { return files || bytes; }
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
  /// The end of what a change feed admits of the commits after `at`.
  Result<DeltaOffset> WalkChanges(DeltaOffset at, Budget budget, bool used, std::int64_t last_version);
  /// The commits from `from` up to `end`, each with the range [first, last] of its files; of the initial snapshot too.
  struct Part {
    std::int64_t version = 0;
    bool is_snapshot = false;
    std::shared_ptr<const VersionFiles> files;
    std::int64_t first = 0;
    std::int64_t last = -1;
  };
  Result<std::vector<Part>> PartsOf(const DeltaOffset& from, const DeltaOffset& end);
  Result<BatchInput> ReadChanges(const DeltaOffset& from, const std::vector<Part>& parts);
  /// DELTA_MISSING_CHANGE_DATA where the version did not keep a feed.
  Result<void> CheckFeed(std::int64_t version);
  bool IsExcluded(const dl::AddFile& file) const { return options_.exclude && options_.exclude->Find(file.path); }

  // Schema tracking (delta_source_tracking.cc).
  bool is_tracking() const { return schema_log_ && !schema_log_->empty(); }
  std::string SourcePath() const;
  /// Writes the first entry from the metadata of versions first..last.
  Result<void> StartTracking(std::int64_t first, std::int64_t last);
  /// The tracked metadata follow an initial snapshot that moved on before anything was read.
  Result<void> FollowSnapshot(std::int64_t version);
  /// Adds the entry of the barrier at `version` and fails, unless it is there already.
  Result<void> Evolve(std::int64_t version);
  /// What a commit makes of the tracked metadata; nullopt where it changes nothing.
  Result<std::optional<TrackedMetadata>> BarrierOf(const std::vector<dl::Action>& actions, std::int64_t version) const;

  // Event-time order of the initial snapshot (event_order.cc).
  bool has_event_order() const { return event_order_; }
  Result<void> CheckEventOrder(const std::optional<Offset>& start, const std::optional<Offset>& end) const;
  Result<void> LoadBounds(std::int64_t version);
  Result<EventBounds> BoundsOf(const dl::AddFile& file) const;
  Result<EventBounds> ScanBounds(const dl::AddFile& file) const;
  Result<DeltaOffset> WalkBuckets(const DeltaOffset& from, Budget budget);
  Result<BatchInput> ReadBucket(const DeltaOffset& from, const DeltaOffset& end);
  Result<BatchInput> InputOf(const std::vector<const dl::AddFile*>& files) const;
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
  std::optional<SchemaLog> schema_log_;
  /// The tracked metadata that this run reads with.
  std::optional<TrackedMetadata> tracked_;
  bool feed_checked_ = false;
  bool event_order_ = false;
  std::int64_t bounds_version_ = -1;
  /// Files of the initial snapshot by upper bound.
  std::vector<std::pair<EventBounds, std::shared_ptr<const dl::AddFile>>> bounds_;
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
