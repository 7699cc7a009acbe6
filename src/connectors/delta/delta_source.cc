#include <algorithm>
#include <chrono>
#include <thread>

#include "base/bytes.h"
#include "connectors/delta/delta_source_internal.h"
#include "types/value.h"

namespace fleuve::connectors::delta {

namespace {

/// How long a query waits for the version it starts at when that is the next one: 1 s in all.
constexpr int kNextVersionLooks = 100;
constexpr std::chrono::milliseconds kNextVersionPause(10);

/// Commits that the backlog of one progress record may read for the first time.
constexpr std::int64_t kBacklogCommits = 10000;

/// The version of a commit file; -1 for every other name.
std::int64_t VersionOfFile(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.size() != 25 || !name.ends_with(".json") || name.find_first_not_of("0123456789") != 20) {
    return -1;
  }
  return std::stoll(name.substr(0, 20));
}

/// A start beyond the newest version is waited for.
bool AcceptsLaterStart(const plan::AnalysisConfig& config) {
  return BooleanConf(config, "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", false);
}

}  // namespace

DeltaSource::DeltaSource(std::shared_ptr<const DeltaStreamRelation> relation, DeltaSourceOptions options,
                         SourceContext context, dl::DeltaLogPtr log, dl::SnapshotPtr at_start,
                         types::Schema table_schema, std::optional<SchemaLog> schema_log)
    : relation_(std::move(relation)),
      options_(std::move(options)),
      context_(std::move(context)),
      log_(std::move(log)),
      table_id_(at_start->metadata().id),
      metadata_(relation_->metadata()),
      start_version_(at_start->version()),
      read_schema_(std::move(table_schema)),
      schema_log_(std::move(schema_log)) {
  if (is_tracking()) {
    tracked_ = schema_log_->newest();
  }
  // A start that the user names leaves no snapshot to be ordered; without a watermark nothing can be late.
  event_order_ = !options_.has_start() && context_.event_time && !options_.read_change_feed &&
                 options_.with_event_time_order.value_or(
                     BooleanConf(context_.config, "spark.databricks.delta.withEventTimeOrder.enabled", false));
}

DeltaSource::~DeltaSource() { Stop(); }

std::string DeltaSource::description() const {
  return "DeltaSource[" + storage::ToFileUri(log_->location().path) + "]";
}

bool DeltaSource::Budget::Take(std::int64_t size) {
  const bool ok = (!files || *files > 0) && (!bytes || *bytes > 0);
  if (files) {
    --*files;
  }
  if (bytes) {
    *bytes -= size;
  }
  return ok;
}

Result<dl::SnapshotPtr> DeltaSource::Latest() {
  FLEUVE_ASSIGN(dl::SnapshotPtr latest, log_->Latest());
  if (latest->metadata().id != table_id_) {
    return DifferentTable(latest->metadata().id, table_id_);
  }
  latest_known_ = latest->version();
  return latest;
}

Result<std::int64_t> DeltaSource::VersionOfTimestamp(const std::string& text) {
  const auto micros = types::ParseTimestamp(text, context_.config.session_zone);
  if (!micros && !BooleanConf(context_.config, "spark.databricks.delta.timeTravel.parsing.strict", true)) {
    return log_->EarliestVersion(/*recreatable=*/false);
  }
  if (!micros) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_INVALID",
                 "The provided timestamp (" + text + ") cannot be converted to a valid timestamp.")
        .With("expr", text);
  }
  const std::int64_t wanted_ms = *micros / 1000;
  FLEUVE_ASSIGN(const auto commits, log_->CommitsFrom(0));
  for (const auto& commit : commits) {
    if (commit.timestamp_ms >= wanted_ms) {
      return commit.version;
    }
  }
  if (AcceptsLaterStart(context_.config) && !commits.empty()) {
    return commits.back().version + 1;
  }
  const std::int64_t last_ms = commits.empty() ? 0 : commits.back().timestamp_ms;
  auto last = types::TimestampToString(last_ms * 1000, context_.config.session_zone);
  auto wanted = types::TimestampToString(*micros, context_.config.session_zone);
  const std::string last_text = last.ok() ? *last : std::to_string(last_ms);
  const std::string wanted_text = wanted.ok() ? *wanted : text;
  return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
               "The provided timestamp (" + wanted_text + ") is after the latest version available to this table (" +
                   last_text + "). Please use a timestamp before or at " + last_text + ".")
      .With("providedTimestamp", wanted_text)
      .With("lastCommitTimestamp", last_text)
      .With("maximumTimestamp", last_text);
}

Result<DeltaSource::Start> DeltaSource::ResolveStart(std::int64_t latest) {
  if (options_.start_at_latest) {
    // Nothing that was committed before the query started is read.
    return Start{start_version_ + 1, false};
  }
  if (options_.starting_version) {
    const std::int64_t wanted = *options_.starting_version;
    FLEUVE_ASSIGN(const std::int64_t earliest, log_->EarliestVersion(/*recreatable=*/false));
    if (wanted > latest && AcceptsLaterStart(context_.config)) {
      return Start{wanted, false};
    }
    // A program that starts a query and then makes the commit it begins at is right wherever starting takes longer than
    // a commit; here it takes less, so the next version is given a moment to come.
    for (int i = 0; i < kNextVersionLooks && wanted == latest + 1; ++i) {
      if (context_.token != nullptr && context_.token->cancelled()) {
        return Error::Cancelled();
      }
      std::this_thread::sleep_for(kNextVersionPause);
      FLEUVE_ASSIGN(const auto snapshot, Latest());
      latest = snapshot->version();
    }
    if (wanted < earliest || wanted > latest) {
      return Error(ErrorKind::kNotFound, "DELTA_VERSION_NOT_FOUND",
                   "Cannot time travel Delta table to version " + std::to_string(wanted) + ". Available versions: [" +
                       std::to_string(earliest) + ", " + std::to_string(latest) + "].")
          .With("userVersion", std::to_string(wanted))
          .With("earliest", std::to_string(earliest))
          .With("latest", std::to_string(latest));
    }
    return Start{wanted, false};
  }
  if (options_.starting_timestamp) {
    FLEUVE_ASSIGN(const std::int64_t version, VersionOfTimestamp(*options_.starting_timestamp));
    return Start{version, false};
  }
  return Start{start_version_, true};
}

Result<void> DeltaSource::RecordStart(const Start& start) {
  Json text;
  text.Set("reservoirId", table_id_).Set("version", start.version).Set("isSnapshot", start.is_snapshot);
  const std::string folder = context_.checkpoint.path + "/.fleuve";
  const std::string path = folder + "/delta-start-" + std::to_string(context_.index);
  FLEUVE_TRY(context_.checkpoint.store->Put(path, text.Dump(), storage::PutMode::kOverwrite));
  records_ = {{path}, {folder, context_.checkpoint.path}};
  return {};
}

Result<std::optional<DeltaSource::Start>> DeltaSource::ReadRecordedStart() {
  const std::string folder = context_.checkpoint.path + "/.fleuve";
  const std::string path = folder + "/delta-start-" + std::to_string(context_.index);
  auto text = context_.checkpoint.store->Get(path);
  if (!text.ok()) {
    if (text.error().kind() == ErrorKind::kNotFound) {
      return std::optional<Start>();
    }
    return std::move(text).error();
  }
  auto json = Json::Parse(*text);
  if (!json.ok() || (*json)["reservoirId"].AsString() != table_id_) {
    return std::optional<Start>();
  }
  // The run that wrote it may have died before it was synced.
  records_ = {{path}, {folder, context_.checkpoint.path}};
  return std::optional<Start>(Start{(*json)["version"].AsInt(), (*json)["isSnapshot"].AsBool()});
}

Result<DeltaSource::Start> DeltaSource::StartOfReplay(const DeltaOffset& end) {
  FLEUVE_ASSIGN(const auto recorded, ReadRecordedStart());
  if (recorded) {
    return *recorded;
  }
  // A checkpoint of another engine: its own rule.
  if (options_.has_start()) {
    FLEUVE_ASSIGN(const auto latest, Latest());
    return ResolveStart(latest->version());
  }
  return end.is_starting ? Start{end.version, true} : Start{end.version - 1, true};
}

Result<void> DeltaSource::Recover(const std::optional<Offset>& start, const std::optional<Offset>& end) {
  if (!start && end) {
    FLEUVE_ASSIGN(const DeltaOffset planned, DeltaOffset::Parse(*end, table_id_));
    FLEUVE_ASSIGN(start_, StartOfReplay(planned));
  }
  if (start) {
    FLEUVE_ASSIGN(const DeltaOffset from, DeltaOffset::Parse(*start, table_id_));
    (void)from;
  }
  return CheckEventOrder(start, end);
}

Result<void> DeltaSource::BatchPlanned(const std::optional<Offset>& start) {
  if (!start || !is_tracking()) {
    return {};
  }
  FLEUVE_ASSIGN(const DeltaOffset from, DeltaOffset::Parse(*start, table_id_));
  return from.is_barrier() ? Evolve(from.version) : Result<void>();
}

Result<void> DeltaSource::PrepareForAvailableNow() {
  available_now_ = true;
  return {};
}

/// The end of what `budget` admits after `from`; nullopt where nothing is new.
Result<std::optional<DeltaOffset>> DeltaSource::Walk(const DeltaOffset& from, Budget budget,
                                                     std::int64_t last_version) {
  DeltaOffset at = from;
  const auto ended = [&]() { return at == from ? std::nullopt : std::optional<DeltaOffset>(at); };
  bool used = false;
  if (at.is_starting) {
    FLEUVE_ASSIGN(const auto snapshot, SnapshotFiles(at.version));
    for (std::int64_t i = at.next_file(); i < snapshot->count(); ++i) {
      if (options_.read_change_feed && IsExcluded(snapshot->file(i))) {
        at.index = i;
        continue;
      }
      if (!budget.Take(snapshot->file(i).size)) {
        return ended();
      }
      at.index = i;
      used = true;
    }
    at = DeltaOffset{at.version + 1, -1, false};
  }
  if (options_.read_change_feed) {
    FLEUVE_ASSIGN(at, WalkChanges(at, budget, used, last_version));
    return ended();
  }
  while (at.version <= last_version) {
    std::int64_t version = at.version;
    FLEUVE_ASSIGN(const auto commit, OpenCommit(&version, last_version));
    if (!commit) {
      break;
    }
    if (version != at.version) {
      at = DeltaOffset{version, -1, false};
    }
    if (commit->barrier && at.index == -1) {
      at.index = kBarrier;
      return ended();
    }
    for (std::int64_t i = at.next_file(); i < commit->count(); ++i) {
      if (!budget.Take(commit->file(i).size)) {
        return ended();
      }
      at.index = i;
    }
    at = DeltaOffset{at.version + 1, -1, false};
  }
  return ended();
}

Result<std::optional<Offset>> DeltaSource::LatestOffset(const std::optional<Offset>& start, Admission admission) {
  FLEUVE_ASSIGN(const dl::SnapshotPtr latest, Latest());
  newly_listed_ = 0;
  backlog_known_ = false;
  DeltaOffset from;
  bool record = false;
  if (start) {
    FLEUVE_ASSIGN(from, DeltaOffset::Parse(*start, table_id_));
  } else {
    if (!start_) {
      FLEUVE_ASSIGN(start_, ResolveStart(latest->version()));
    }
    record = true;
    from = DeltaOffset{start_->version, -1, start_->is_snapshot};
  }
  if (schema_log_ && schema_log_->empty()) {
    // A base offset is before its version, which may not exist yet.
    const std::int64_t version = !start || from.index != -1 || from.is_starting || from.version == 0
                                     ? std::min(from.version, latest->version())
                                     : from.version - 1;
    FLEUVE_TRY(StartTracking(version, version));
  } else if (is_tracking() && !start) {
    FLEUVE_TRY(FollowSnapshot(std::min(from.version, latest->version())));
  }
  if (is_tracking() && from.index == kBarrier) {
    from.index = kPastBarrier;
    return std::optional<Offset>(from.ToJson(table_id_));
  }
  if (is_tracking() && from.index == kPastBarrier) {
    // Only a run that ended between the two steps of a change comes here with the change still to be made.
    FLEUVE_TRY(Evolve(from.version));
  }
  if (options_.read_change_feed && from.version <= latest->version()) {
    FLEUVE_TRY(CheckFeed(from.version));
  }
  FLEUVE_TRY(CheckStartSchema(from.is_starting || from.version == 0 ? from.version : from.version - 1));
  if (available_now_ && !available_now_version_) {
    // What the run will read is fixed now; what forbids a commit of it is found now.
    FLEUVE_TRY([&]() -> Result<void> {
      FLEUVE_ASSIGN(const auto end, Walk(from, Budget{}, latest->version()));
      (void)end;
      return {};
    }());
    available_now_version_ = latest->version();
  }
  Budget budget;
  if (admission == Admission::kRateLimited) {
    budget.files = options_.max_files;
    budget.bytes = options_.max_bytes;
  }
  const std::int64_t last_version = available_now_version_ ? *available_now_version_ : latest->version();
  std::optional<DeltaOffset> end;
  if (event_order_ && from.is_starting && (budget.is_limited() || from.event_time_ms)) {
    FLEUVE_ASSIGN(end, WalkBuckets(from, budget));
  } else {
    FLEUVE_ASSIGN(end, Walk(from, budget, last_version));
  }
  CountBacklog(end ? *end : from);
  if (!end) {
    return start;
  }
  if (record) {
    FLEUVE_TRY(RecordStart(*start_));
  }
  return std::optional<Offset>(end->ToJson(table_id_));
}

Result<BatchInput> DeltaSource::Read(const std::optional<Offset>& start, const Offset& end_text) {
  FLEUVE_ASSIGN(const DeltaOffset end, DeltaOffset::Parse(end_text, table_id_));
  DeltaOffset from;
  if (start) {
    FLEUVE_ASSIGN(from, DeltaOffset::Parse(*start, table_id_));
  } else {
    if (!start_) {
      FLEUVE_ASSIGN(start_, StartOfReplay(end));
    }
    from = DeltaOffset{start_->version, -1, start_->is_snapshot};
  }
  if (schema_log_ && schema_log_->empty()) {
    const bool has_base_end = end.index == -1 && !end.is_starting;
    FLEUVE_TRY(StartTracking(from.version, std::max(from.version, has_base_end ? end.version - 1 : end.version)));
  }
  if (options_.read_change_feed && (from.is_starting || from.version < end.version || end.index >= 0)) {
    FLEUVE_TRY(CheckFeed(from.version));
  }
  FLEUVE_TRY(CheckStartSchema(from.is_starting || from.version == 0 ? from.version : from.version - 1));
  if (from.event_time_ms || end.event_time_ms) {
    return ReadBucket(from, end);
  }
  FLEUVE_ASSIGN(const std::vector<Part> parts, PartsOf(from, end));
  if (options_.read_change_feed) {
    return ReadChanges(from, parts);
  }
  std::vector<const dl::AddFile*> files;
  for (const Part& part : parts) {
    for (std::int64_t i = part.first; i <= part.last; ++i) {
      if (!IsExcluded(part.files->file(i))) {
        files.push_back(&part.files->file(i));
      }
    }
  }
  return InputOf(files);
}

Result<std::vector<DeltaSource::Part>> DeltaSource::PartsOf(const DeltaOffset& from, const DeltaOffset& end) {
  std::vector<Part> parts;
  DeltaOffset at = from;
  if (at.is_starting) {
    Part part;
    FLEUVE_ASSIGN(part.files, SnapshotFiles(at.version));
    part.version = at.version;
    part.is_snapshot = true;
    const std::int64_t count = part.files->count();
    part.first = at.next_file();
    part.last = end.is_starting && end.version == at.version ? std::min(end.index, count - 1) : count - 1;
    parts.push_back(std::move(part));
    at = DeltaOffset{at.version + 1, -1, false};
  }
  if (end.is_starting) {
    return parts;
  }
  // The version of a base offset is not opened: it may not exist yet.
  const std::int64_t last_version = end.index >= 0 ? end.version : end.version - 1;
  std::int64_t seen = at.version - 1;
  while (at.version <= last_version) {
    std::int64_t version = at.version;
    auto opened = OpenCommit(&version, last_version);
    if (!opened.ok()) {
      if (opened.error().kind() == ErrorKind::kNotFound &&
          opened.error().condition() != "DELTA_MISSING_FILES_UNEXPECTED_VERSION") {
        break;
      }
      return std::move(opened).error();
    }
    if (!*opened) {
      break;
    }
    Part part;
    part.version = version;
    part.files = *opened;
    const std::int64_t count = part.files->count();
    part.first = version == at.version ? at.next_file() : 0;
    part.last = version == end.version ? std::min(end.index, count - 1) : count - 1;
    parts.push_back(std::move(part));
    seen = version;
    at = DeltaOffset{version + 1, -1, false};
  }
  if (seen < last_version &&
      BooleanConf(context_.config, "spark.databricks.delta.streaming.trailingCommitValidation.enabled", true)) {
    return Error(ErrorKind::kNotFound, "DELTA_STREAMING_TRAILING_COMMIT_MISSING",
                 "The stream expected the commits up to version " + std::to_string(last_version) +
                     " but the last one it found is " + std::to_string(seen) +
                     ": commit files of the table were removed while the batch was planned.")
        .With("expectedVersion", std::to_string(last_version))
        .With("seenVersion", std::to_string(seen));
  }
  return parts;
}

Result<BatchInput> DeltaSource::InputOf(const std::vector<const dl::AddFile*>& files) const {
  BatchInput input;
  if (files.empty()) {
    input.row_count = 0;
    return input;
  }
  FLEUVE_ASSIGN(plan::FileScan scan, dl::MakeScan(metadata_));
  scan.session_zone = context_.config.session_zone;
  std::int64_t rows = 0;
  const bool ignore_missing = BooleanConf(context_.config, "spark.sql.files.ignoreMissingFiles", false);
  for (const dl::AddFile* file : files) {
    if (ignore_missing) {
      FLEUVE_ASSIGN(const std::string path, dl::AbsolutePath(log_->location(), file->path));
      if (const auto head = log_->location().store->Head(path);
          !head.ok() && head.error().kind() == ErrorKind::kNotFound) {
        continue;
      }
    }
    FLEUVE_ASSIGN(plan::ScanFile one, dl::MakeScanFile(scan, metadata_, *file, log_->location()));
    const std::int64_t count = dl::NumRecords(*file);
    rows = rows < 0 || count < 0 ? -1 : rows + count - (one.deleted_rows ? one.deleted_rows->count() : 0);
    scan.files.push_back(std::move(one));
  }
  input.row_count = rows;
  input.scan = std::make_shared<const plan::FileScan>(std::move(scan));
  return input;
}

Result<void> DeltaSource::Commit(const Offset& end) {
  FLEUVE_ASSIGN(const DeltaOffset offset, DeltaOffset::Parse(end, table_id_));
  Forget(offset.version);
  return {};
}

/// Files and bytes after `end`, up to the newest version known. For progress only: nothing here can fail a batch.
void DeltaSource::CountBacklog(const DeltaOffset& end) {
  std::int64_t files = 0;
  std::int64_t bytes = 0;
  const auto add = [&](const VersionFiles& version, std::int64_t from) {
    const std::int64_t count = version.count();
    if (version.failure || from >= count) {
      return;
    }
    if (!options_.exclude) {
      files += count - from;
      bytes += version.bytes_from[static_cast<std::size_t>(from)];
      return;
    }
    for (std::int64_t i = from; i < count; ++i) {
      if (!IsExcluded(version.file(i))) {
        ++files;
        bytes += version.file(i).size;
      }
    }
  };
  std::int64_t version = end.version;
  std::int64_t next_file = end.next_file();
  if (snapshot_files_ && !snapshot_listed_) {
    snapshot_listed_ = true;
    newly_listed_ += snapshot_files_->count();
    listed_up_to_ = std::max(listed_up_to_, snapshot_files_version_);
  }
  if (end.is_starting) {
    if (end.event_time_ms) {
      for (const auto& [bounds, file] : bounds_) {
        if (bounds.high_micros && *bounds.high_micros >= (*end.event_time_ms + 1) * 1000 && !IsExcluded(*file)) {
          ++files;
          bytes += file->size;
        }
      }
    } else if (auto snapshot = SnapshotFiles(end.version); snapshot.ok()) {
      add(**snapshot, next_file);
    }
    ++version;
    next_file = 0;
  }
  // Commits that the planning of this batch took count as listed now too.
  for (const auto& [known, commit] : commits_) {
    if (known > listed_up_to_ && known < version) {
      newly_listed_ += commit->count();
      listed_up_to_ = known;
    }
  }
  if (latest_known_ - version > kBacklogCommits) {
    return;
  }
  for (; version <= latest_known_; ++version, next_file = 0) {
    auto commit = CommitFiles(version);
    if (!commit.ok()) {
      continue;
    }
    if (version > listed_up_to_) {
      newly_listed_ += (*commit)->count();
      listed_up_to_ = version;
    }
    add(**commit, next_file);
  }
  backlog_files_ = files;
  backlog_bytes_ = bytes;
  backlog_known_ = true;
  had_backlog_ = had_backlog_ || files > 0;
}

std::map<std::string, std::string> DeltaSource::Metrics(const std::optional<Offset>&) {
  if (!backlog_known_ || !(had_backlog_ || options_.has_limit)) {
    return {};
  }
  return {{"numFilesOutstanding", std::to_string(backlog_files_)},
          {"numBytesOutstanding", std::to_string(backlog_bytes_)},
          {"numNewListedFiles", std::to_string(newly_listed_)},
          {"backlogEndOffset", std::to_string(latest_known_.load())}};
}

bool DeltaSource::SetDataListener(std::function<void()> callback) {
  watch_.reset();
  if (listener_key_ != 0) {
    log_->RemoveCommitListener(listener_key_);
    listener_key_ = 0;
  }
  if (!callback) {
    return false;
  }
  // A commit is told twice (by this process and by the system) and is looked for once.
  const auto heard = [this, callback](std::int64_t version) {
    if (version > latest_known_.load()) {
      callback();
    }
  };
  listener_key_ = log_->AddCommitListener(heard);
  if (!log_->location().store->is_local()) {
    // Only this process sees the store: its own commits are all there are.
    return true;
  }
  watch_ = WatchFolder(log_->location().path + "/_delta_log", /*recursive=*/false,
                       [heard, callback](const FolderEvent& event) {
                         if (event.path.empty()) {
                           callback();
                         } else {
                           heard(VersionOfFile(event.path));
                         }
                       });
  return watch_ != nullptr;
}

void DeltaSource::Stop() {
  watch_.reset();
  if (listener_key_ != 0) {
    log_->RemoveCommitListener(listener_key_);
    listener_key_ = 0;
  }
}

}  // namespace fleuve::connectors::delta
