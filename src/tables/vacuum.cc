#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "base/bytes.h"
#include "base/progress.h"
#include "base/thread_pool.h"
#include "delta/deletion_vector.h"
#include "delta/snapshot_build.h"
#include "delta/table_source.h"
#include "tables/commands.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::Value;

namespace {

/// Entries of VACUUM in the history carry no files.
Result<void> CommitVacuum(const TableContext& context, const TableRef& table, const std::string& name, Json parameters,
                          delta::StringMap metrics) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, log->Latest());
  delta::Transaction transaction(log, snapshot);
  delta::Operation operation = NamedOperation(context, name);
  operation.parameters = std::move(parameters);
  operation.metrics = std::move(metrics);
  FLEUVE_TRY(transaction.Commit({}, std::move(operation)));
  return {};
}

constexpr int kThreads = 8;

/// Stops at the first file that cannot be deleted; one that is gone already is no failure.
Result<void> DeleteFiles(storage::ObjectStore& store, const std::vector<storage::ObjectMeta>& files, int threads,
                         const CancellationTokenPtr& token) {
  Progress progress("vacuum: files deleted", static_cast<std::int64_t>(files.size()));
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Result<void> failure;
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t at = next++; at < files.size() && !failed; at = next++) {
      auto done = token ? token->Check() : Result<void>();
      if (done.ok()) {
        done = store.Delete(files[at].path);
      }
      if (!done.ok() && done.error().kind() != ErrorKind::kNotFound) {
        const std::lock_guard lock(mutex);
        failure = failed ? std::move(failure) : std::move(done);
        failed = true;
        return;
      }
      progress.Advance();
    }
  };
  if (threads == 1) {
    work();
  } else {
    ThreadPool pool(threads);
    pool.RunAll(std::vector<std::function<void()>>(static_cast<std::size_t>(threads), work));
  }
  return failure;
}

bool IsHidden(std::string_view relative) {
  for (const std::string& part : Split(relative, '/')) {
    if (part == "_change_data" || part.find('=') != std::string::npos) {
      continue;
    }
    if (part.starts_with("_") || part.starts_with(".")) {
      return true;
    }
  }
  return false;
}

/// What the last VACUUM left behind for the next lite one, as the reference writes it.
constexpr std::string_view kLastVacuum = "/_last_vacuum_info";
constexpr const char* kLastVacuumVersion = "latestCommitVersionOutsideOfRetentionWindow";

/// The newest version whose removed files an earlier VACUUM has dealt with.
std::optional<std::int64_t> VacuumedUpTo(const storage::Location& table) {
  const auto text = table.store->Get(delta::LogFolder(table.path) + std::string(kLastVacuum));
  if (!text.ok()) {
    return std::nullopt;
  }
  const auto json = Json::Parse(*text);
  if (!json.ok() || !(*json)[kLastVacuumVersion].is_int()) {
    return std::nullopt;
  }
  return (*json)[kLastVacuumVersion].AsInt();
}

Result<void> RememberVacuum(const delta::DeltaLogPtr& log, std::int64_t horizon) {
  FLEUVE_ASSIGN(const std::vector<delta::VersionTime> versions, log->CommitsFrom(0));
  std::optional<std::int64_t> newest;
  for (const delta::VersionTime& at : versions) {
    if (at.timestamp_ms <= horizon) {
      newest = at.version;
    }
  }
  if (!newest) {
    return {};
  }
  Json info(Json::Object{});
  info.Set(kLastVacuumVersion, Json(*newest));
  const storage::Location& table = log->location();
  return table.store->Put(delta::LogFolder(table.path) + std::string(kLastVacuum), info.Dump(),
                          storage::PutMode::kOverwrite);
}

/// Files that commits of the log say were removed before `horizon`; vectors included.
Result<std::vector<storage::ObjectMeta>> RemovedByLog(const delta::DeltaLogPtr& log, const storage::Location& table,
                                                      std::int64_t horizon) {
  FLEUVE_ASSIGN(const std::vector<delta::VersionTime> versions, log->CommitsFrom(0));
  const std::int64_t known = VacuumedUpTo(table).value_or(-1);
  if (versions.empty() || versions.front().version > known + 1) {
    return Error(ErrorKind::kUnsupported, "DELTA_CANNOT_VACUUM_LITE",
                 "VACUUM LITE cannot find all removed files: the first commits of the log are gone. Run VACUUM once.");
  }
  std::set<std::string> paths;
  for (const delta::VersionTime& at : versions) {
    if (at.version < known) {
      continue;
    }
    FLEUVE_ASSIGN(const delta::Commit commit, log->ReadCommit(at.version));
    for (const delta::Action& action : commit.actions) {
      const auto* remove = std::get_if<delta::RemoveFile>(&action);
      if (remove == nullptr || remove->deletion_timestamp.value_or(0) > horizon) {
        continue;
      }
      FLEUVE_ASSIGN(std::string path, delta::AbsolutePath(table, remove->path));
      paths.insert(std::move(path));
      if (remove->deletion_vector) {
        FLEUVE_ASSIGN(std::string vector, delta::DeletionVectorPath(*remove->deletion_vector, table));
        if (!vector.empty()) {
          paths.insert(std::move(vector));
        }
      }
    }
  }
  std::vector<storage::ObjectMeta> files;
  for (const std::string& path : paths) {
    // Files of other tables (of clones) are theirs.
    if (!path.starts_with(table.path + "/")) {
      continue;
    }
    if (auto head = table.store->Head(path); head.ok()) {
      files.push_back(*std::move(head));
    }
  }
  return files;
}

}  // namespace

Result<RowsResult> Vacuum(const TableContext& context, const TableRef& table, std::optional<double> retention_hours,
                          bool dry_run, bool lite) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  auto latest = log->Latest();
  if (!latest.ok() && latest.error().condition() == "DELTA_TABLE_NOT_FOUND") {
    return Error(ErrorKind::kUnsupported, "DELTA_TABLE_ONLY_OPERATION",
                 table.name + " is not a Delta table. VACUUM is only supported for Delta tables.")
        .With("tableName", table.name)
        .With("operation", "VACUUM");
  }
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, std::move(latest));
  FLEUVE_TRY(delta::CheckWritable(snapshot->protocol(), table.name));
  std::int64_t retention = 7LL * 86400000;
  if (const std::string* text = snapshot->Property("delta.deletedFileRetentionDuration")) {
    retention = delta::ParseIntervalMs(*text).value_or(retention);
  }
  const bool checked = ConfFlag(context.config, "spark.databricks.delta.retentionDurationCheck.enabled", true);
  std::int64_t wanted = retention;
  // Only an explicit zero departs from the table's property, as in the reference.
  if (retention_hours && *retention_hours == 0) {
    if (checked) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
                   "A retention of 0 hours would delete files that running readers and writers need. To do it all the "
                   "same, set spark.databricks.delta.retentionDurationCheck.enabled to false.")
          .With("configuredRetentionHours", std::to_string(retention / 3600000))
          .Family(ErrorFamily::kIllegalArgument);
    }
    wanted = 0;
  }
  const std::int64_t now = context.logs->context().clock->NowMillis();
  const std::int64_t horizon = now - wanted;
  std::set<std::string> kept;
  const auto keep_vector = [&](const std::optional<delta::DeletionVectorDescriptor>& dv) -> Result<void> {
    if (dv) {
      FLEUVE_ASSIGN(std::string path, delta::DeletionVectorPath(*dv, table.location));
      if (!path.empty()) {
        kept.insert(std::move(path));
      }
    }
    return {};
  };
  Result<void> walked;
  snapshot->ForEachFile(
      [&](const delta::AddFile& add) {
        if (!walked.ok()) {
          return;
        }
        auto path = delta::AbsolutePath(table.location, add.path);
        if (path.ok()) {
          kept.insert(*std::move(path));
          walked = keep_vector(add.deletion_vector);
        } else {
          walked = std::move(path).error();
        }
      },
      false);
  FLEUVE_TRY(walked);
  for (const delta::RemoveFile& remove : snapshot->Tombstones()) {
    if (remove.deletion_timestamp.value_or(0) > horizon) {
      FLEUVE_ASSIGN(std::string path, delta::AbsolutePath(table.location, remove.path));
      kept.insert(std::move(path));
      FLEUVE_TRY(keep_vector(remove.deletion_vector));
    }
  }
  auto& store = *table.location.store;
  std::vector<storage::ObjectMeta> entries;
  if (lite) {
    FLEUVE_ASSIGN(entries, RemovedByLog(log, table.location, horizon));
  } else {
    FLEUVE_ASSIGN(entries, store.ListRecursive(table.location.path));
  }
  std::vector<storage::ObjectMeta> gone;
  std::int64_t bytes = 0;
  std::set<std::string_view> folders{""};  // the table's own, and those below it that have files
  Progress looked("vacuum: files looked at", static_cast<std::int64_t>(entries.size()));
  for (const storage::ObjectMeta& entry : entries) {
    looked.Advance();
    const std::string_view relative = std::string_view(entry.path).substr(table.location.path.size() + 1);
    for (std::size_t end = relative.find('/'); end != std::string_view::npos && !lite;
         end = relative.find('/', end + 1)) {
      if (!IsHidden(relative.substr(0, end))) {
        folders.insert(relative.substr(0, end));
      }
    }
    if (entry.is_directory || IsHidden(relative) || kept.contains(entry.path) || entry.modified_ms >= horizon) {
      continue;
    }
    gone.push_back(entry);
    bytes += entry.size_bytes;
  }
  RowsResult result;
  result.schema = DataType::Struct({{"path", DataType::String(), true, Json()}});
  if (dry_run) {
    for (const storage::ObjectMeta& entry : gone) {
      result.rows.push_back({Value(storage::ToFileUri(entry.path))});
    }
    return result;
  }
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  Json start(Json::Object{});
  start.Set("retentionCheckEnabled", Json(checked));
  if (retention_hours) {
    start.Set("specifiedRetentionMillis", Json(static_cast<std::int64_t>(*retention_hours * 3600000)));
  }
  start.Set("defaultRetentionMillis", Json(retention));
  FLEUVE_TRY(CommitVacuum(
      context, table, "VACUUM START", std::move(start),
      {{"numFilesToDelete", number(static_cast<std::int64_t>(gone.size()))}, {"sizeOfDataToDelete", number(bytes)}}));
  const bool side_by_side = ConfFlag(context.config, "spark.databricks.delta.vacuum.parallelDelete.enabled", false);
  const auto deleted = DeleteFiles(store, gone, side_by_side ? kThreads : 1, context.token);
  if (!deleted.ok()) {
    Json failed(Json::Object{});
    failed.Set("status", Json("FAILED"));
    FLEUVE_TRY(CommitVacuum(context, table, "VACUUM END", std::move(failed), {}));
    return deleted.error();
  }
  RememberVacuum(log, horizon).IgnoreBecause("without it a lite VACUUM reads more of the log");
  Json end(Json::Object{});
  end.Set("status", Json("COMPLETED"));
  FLEUVE_TRY(CommitVacuum(context, table, "VACUUM END", std::move(end),
                          {{"numDeletedFiles", number(static_cast<std::int64_t>(gone.size()))},
                           {"numVacuumedDirectories", number(static_cast<std::int64_t>(folders.size()))}}));
  log->WaitForBackground();
  result.rows.push_back({Value(storage::ToFileUri(table.location.path))});
  return result;
}

}  // namespace fleuve::tables
