// What the versions of the table hold for the stream: the initial snapshot in its order, the files of each commit, and
// what forbids a commit.

#include <algorithm>

#include "base/bytes.h"
#include "connectors/delta/delta_source_internal.h"

namespace fleuve::connectors::delta {

namespace {

/// Parsed commits that wait to be planned and read: enough for a batch, little enough to be held.
constexpr std::size_t kCommitsHeld = 4096;

/// `WRITE` with its parameters, or what was removed where the commit does not say.
std::string ChangeInfo(const dl::CommitInfo* info, const std::string& removed) {
  if (info == nullptr || info->operation.empty()) {
    return removed;
  }
  std::string out = info->operation;
  const auto& parameters = info->operation_parameters.fields();
  if (!parameters.empty()) {
    out += " with parameters ";
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Json& value = parameters[i].second;
      out += (i == 0 ? "" : ", ") + parameters[i].first + ": " + (value.is_string() ? value.AsString() : value.Dump());
    }
  }
  return out;
}

}  // namespace

Error SchemaChangedWithVersion(bool with_start, std::int64_t version, const types::Schema& read,
                               const types::Schema& data) {
  const std::string number = std::to_string(version);
  return Error(ErrorKind::kConflict,
               with_start ? "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS" : "DELTA_SCHEMA_CHANGED_WITH_VERSION",
               "Detected schema change in version " + number + ":\nstreaming source schema: " + read.SimpleString() +
                   "\n\ndata file schema: " + data.SimpleString() +
                   "\n\nPlease try restarting the query. If this issue repeats across query restarts without making "
                   "progress, you have made an incompatible schema change and need to start your query from scratch "
                   "using a new checkpoint directory.")
      .With("version", number)
      .With("readSchema", read.SimpleString())
      .With("dataSchema", data.SimpleString());
}

Result<void> DeltaSource::CheckMetadata(const dl::Metadata& metadata, std::int64_t version) {
  if (metadata.id != table_id_) {
    return DifferentTable(metadata.id, table_id_);
  }
  if (schema_log_) {
    // The log decides what is read how; its barriers stop the stream where that changes.
    return {};
  }
  const auto unsafe = [&](const char* name) {
    return BooleanConf(context_.config, std::string("spark.databricks.delta.streaming.") + name, false);
  };
  auto json = Json::Parse(metadata.schema_string);
  if (!json.ok()) {
    return std::move(json).error();
  }
  FLEUVE_ASSIGN(const types::Schema stored, types::DataType::FromJson(*json));
  const bool backfill = version <= start_version_;
  const bool renamed = backfill ? HasRenameOrDrop(metadata, metadata_) : HasRenameOrDrop(metadata_, metadata);
  const types::Schema data = dl::ReadSchemaOf(stored);
  if (renamed && backfill && unsafe("unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled")) {
    return {};
  }
  const auto setting = [&](const char* name, bool fallback) {
    return BooleanConf(context_.config, std::string("spark.databricks.delta.typeWidening.") + name, fallback);
  };
  const bool widened = HasWidening(data, read_schema_);
  if (widened && !setting("allowTypeChangeStreamingDeltaSource", true)) {
    return SchemaChangedWithVersion(options_.has_start(), version, read_schema_, data);
  }
  if ((renamed && !unsafe("unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled")) ||
      (widened && setting("enableStreamingSchemaTracking", false))) {
    if (!BooleanConf(context_.config, "spark.databricks.delta.streaming.schemaTracking.enabled", true)) {
      return Error(ErrorKind::kUnsupported, "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE",
                   "Streaming read is not supported on tables with read-incompatible schema changes (e.g. rename or "
                   "drop or datatype changes).\nRead schema: " +
                       read_schema_.SimpleString() + ". Incompatible data schema: " + data.SimpleString() + ".")
          .With("docLink", "")
          .With("readSchema", read_schema_.SimpleString())
          .With("incompatibleSchema", data.SimpleString());
    }
    return Error(ErrorKind::kUnsupported, "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
                 "Streaming read is not supported on tables with read-incompatible schema changes (e.g. rename or drop "
                 "or "
                 "datatype changes). Please provide a 'schemaTrackingLocation' to enable non-additive schema evolution "
                 "for Delta stream processing.\nRead schema: " +
                     read_schema_.SimpleString() + ". Incompatible data schema: " + data.SimpleString() + ".")
        .With("docLink", "")
        .With("readSchema", read_schema_.SimpleString())
        .With("incompatibleSchema", data.SimpleString());
  }
  // A column that is gone reads as NULL where the user has allowed that; one under a new name does not.
  if (!IsReadable(data, read_schema_)) {
    return SchemaChangedWithVersion(options_.has_start(), version, read_schema_, data);
  }
  if (metadata.partition_columns != metadata_.partition_columns &&
      !unsafe("unsafeReadOnPartitionColumnChanges.enabled")) {
    return SchemaChangedWithVersion(options_.has_start(), version, read_schema_, data);
  }
  return {};
}

Result<void> DeltaSource::CheckStartSchema(std::int64_t version) {
  if (start_schema_checked_) {
    return {};
  }
  start_schema_checked_ = true;
  if (version >= start_version_ || schema_log_ ||
      BooleanConf(context_.config,
                  "spark.databricks.delta.streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled",
                  false)) {
    return {};
  }
  auto snapshot = log_->At(version);
  if (!snapshot.ok()) {
    if (snapshot.error().condition() == "DELTA_UNSUPPORTED_FEATURES_FOR_READ" ||
        snapshot.error().condition() == "DELTA_INVALID_PROTOCOL_VERSION") {
      return std::move(snapshot).error();
    }
    const std::string* mode = dl::FindIn(metadata_.configuration, "delta.columnMapping.mode");
    if (mode != nullptr && *mode != "none") {
      return Error(ErrorKind::kUnsupported, "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
                   "Failed to obtain Delta log snapshot for the start version " + std::to_string(version) +
                       " when checking column mapping schema changes. Please choose a different start version.")
          .With("config",
                "spark.databricks.delta.streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled");
    }
    return {};
  }
  return CheckMetadata((*snapshot)->metadata(), version);
}

Result<std::shared_ptr<const VersionFiles>> DeltaSource::SnapshotFiles(std::int64_t version) {
  if (snapshot_files_ && snapshot_files_version_ == version) {
    return snapshot_files_;
  }
  auto snapshot = log_->At(version);
  if (!snapshot.ok()) {
    if (snapshot.error().kind() == ErrorKind::kNotFound) {
      return Error(ErrorKind::kNotFound, "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
                   "If you never deleted it, it's likely your query is lagging behind: version " +
                       std::to_string(version) +
                       " of the table can no longer be rebuilt. Please delete its checkpoint to restart from scratch.")
          .CausedBy(std::move(snapshot).error());
    }
    return std::move(snapshot).error();
  }
  auto made = std::make_shared<VersionFiles>();
  made->files.reserve(static_cast<std::size_t>((*snapshot)->file_count()));
  (*snapshot)->ForEachFile([&](const dl::AddFile& file) { made->files.push_back(file); }, /*stats=*/true);
  if (options_.read_change_feed) {
    made->changes.reserve(made->files.size());
    for (auto& file : made->files) {
      made->changes.push_back({tables::ChangeKind::kInsert, std::move(file), false});
    }
    made->files.clear();
    std::sort(made->changes.begin(), made->changes.end(), [](const auto& a, const auto& b) {
      return a.file.modification_time != b.file.modification_time ? a.file.modification_time < b.file.modification_time
                                                                  : a.file.path < b.file.path;
    });
  }
  for (auto& file : made->files) {
    // Only the row count is asked for later; the statistics of many files would be held for the whole first run.
    if (made->files.size() > 10000 && !event_order_) {
      file.stats.clear();
    }
  }
  std::sort(made->files.begin(), made->files.end(), [](const dl::AddFile& a, const dl::AddFile& b) {
    return a.modification_time != b.modification_time ? a.modification_time < b.modification_time : a.path < b.path;
  });
  made->Sum();
  snapshot_files_ = made;
  snapshot_files_version_ = version;
  return snapshot_files_;
}

Result<std::shared_ptr<const VersionFiles>> DeltaSource::CommitFiles(std::int64_t version) {
  const auto known = commits_.find(version);
  if (known != commits_.end()) {
    return known->second;
  }
  FLEUVE_ASSIGN(dl::Commit commit, log_->ReadCommit(version));
  auto made = std::make_shared<VersionFiles>();
  const dl::CommitInfo* info = nullptr;
  std::string removed;
  bool removes = false;
  if (is_tracking()) {
    FLEUVE_ASSIGN(made->barrier, BarrierOf(commit.actions, version));
  }
  if (options_.read_change_feed) {
    made->changes = tables::ChangeFilesOf(commit.actions);
    for (const auto& change : made->changes) {
      made->has_change_files = made->has_change_files || change.kind == tables::ChangeKind::kChangeFile;
      made->is_unit = made->is_unit || made->has_change_files || change.file.deletion_vector.has_value();
    }
  }
  for (auto& action : commit.actions) {
    if (auto* add = std::get_if<dl::AddFile>(&action)) {
      if (add->data_change && !options_.read_change_feed) {
        made->files.push_back(std::move(*add));
      }
    } else if (const auto* remove = std::get_if<dl::RemoveFile>(&action)) {
      if (remove->data_change && !options_.read_change_feed) {
        removes = true;
        removed = removed.empty() ? remove->path : removed;
      }
    } else if (const auto* metadata = std::get_if<dl::Metadata>(&action)) {
      if (auto checked = CheckMetadata(*metadata, version); !checked.ok()) {
        made->failure = std::move(checked).error();
      } else if (options_.read_change_feed && !tables::FeedEnabled(*metadata)) {
        made->failure = tables::MissingChangeData(version, version, version);
      }
    } else if (const auto* protocol = std::get_if<dl::Protocol>(&action)) {
      if (auto checked = dl::CheckReadable(*protocol, log_->location().path); !checked.ok()) {
        made->failure = std::move(checked).error();
      }
    } else if (const auto* said = std::get_if<dl::CommitInfo>(&action)) {
      info = said;
    }
  }
  if (removes) {
    const bool adds = !made->files.empty();
    const std::string number = std::to_string(version);
    const std::string path = log_->location().path;
    if (options_.skip_change_commits || (!adds && (options_.ignore_deletes || options_.ignore_changes))) {
      made->files.clear();
    } else if (!adds && !made->failure) {
      made->failure =
          Error(ErrorKind::kUnsupported, "DELTA_SOURCE_IGNORE_DELETE",
                "Detected deleted data (for example " + removed + ") from streaming source at version " + number +
                    ". This is currently not supported. If you'd like to ignore deletes, set the option "
                    "'ignoreDeletes' to 'true'. The source table can be found at path " +
                    path + ".")
              .With("removedFile", removed)
              .With("version", number)
              .With("dataPath", path);
    } else if (adds && !options_.ignore_changes && !made->failure) {
      const std::string change = ChangeInfo(info, removed);
      made->failure =
          Error(ErrorKind::kUnsupported, "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
                "Detected a data update (for example " + change + ") in the source table at version " + number +
                    ". This is currently not supported. If this is going to happen regularly and you are okay "
                    "to skip changes, set the option 'skipChangeCommits' to 'true'. If you would like the data "
                    "update to be reflected, please restart this query with a fresh checkpoint directory. The "
                    "source table can be found at path " +
                    path + ".")
              .With("changeInfo", change)
              .With("version", number)
              .With("dataPath", path);
    }
  }
  made->Sum();
  if (commits_.size() < kCommitsHeld) {
    commits_[version] = made;
  }
  return std::shared_ptr<const VersionFiles>(std::move(made));
}

Result<std::shared_ptr<const VersionFiles>> DeltaSource::OpenCommit(std::int64_t* version, std::int64_t latest) {
  auto files = CommitFiles(*version);
  if (!files.ok() && files.error().kind() == ErrorKind::kNotFound) {
    FLEUVE_ASSIGN(const auto present, log_->CommitsFrom(*version));
    if (present.empty() || present.front().version > latest) {
      if (options_.fail_on_data_loss) {
        return std::move(files).error();
      }
      return std::shared_ptr<const VersionFiles>();
    }
    const std::int64_t found = present.front().version;
    if (options_.fail_on_data_loss && found != *version) {
      return Error(
                 ErrorKind::kNotFound, "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
                 "The stream from your Delta table was expecting process data from version " +
                     std::to_string(*version) +
                     ",\nbut the earliest available version in the _delta_log directory is " + std::to_string(found) +
                     ". The files\nin the transaction log may have been deleted due to log cleanup. In order to avoid "
                     "losing\ndata, we recommend that you restart your stream with a new checkpoint location and to\n"
                     "increase your delta.logRetentionDuration setting, if you have explicitly set it below "
                     "30\ndays.\nIf "
                     "you would like to ignore the missed data and continue your stream from where it left\noff, you "
                     "can "
                     "set the .option(\"failOnDataLoss\", \"false\") as part\nof your readStream statement.")
          .With("startVersion", std::to_string(*version))
          .With("earliestVersion", std::to_string(found))
          .With("option", "failOnDataLoss");
    }
    *version = found;
    files = CommitFiles(found);
  }
  if (!files.ok()) {
    return std::move(files).error();
  }
  if ((*files)->failure) {
    return *(*files)->failure;
  }
  return files;
}

void DeltaSource::Forget(std::int64_t version) {
  commits_.erase(commits_.begin(), commits_.lower_bound(version));
  if (snapshot_files_ && snapshot_files_version_ < version) {
    snapshot_files_.reset();
  }
}

}  // namespace fleuve::connectors::delta
