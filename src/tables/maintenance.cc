#include <algorithm>
#include <map>
#include <set>

#include "base/bytes.h"
#include "delta/deletion_vector.h"
#include "delta/skipping.h"
#include "delta/snapshot_build.h"
#include "delta/table_source.h"
#include "plan/char_padding.h"
#include "tables/clustering_internal.h"
#include "tables/commands.h"
#include "tables/data_files_internal.h"
#include "tables/identity_internal.h"
#include "tables/modify_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::StructField;
using types::Value;

namespace {

StructField Field(std::string name, DataType type) { return {std::move(name), std::move(type), true, Json()}; }

std::string JsonList(const std::vector<std::string>& items) {
  Json::Array array;
  for (const std::string& item : items) {
    array.emplace_back(item);
  }
  return Json(std::move(array)).Dump();
}

DataType FileSizes() {
  return DataType::Struct({Field("min", DataType::Long()), Field("max", DataType::Long()),
                           Field("avg", DataType::Double()), Field("totalFiles", DataType::Long()),
                           Field("totalSize", DataType::Long())});
}

Value SizesOf(const std::vector<delta::AddFile>& files) {
  if (files.empty()) {
    return Value(Value::List{Value(), Value(), Value(0.0), Value(0), Value(0)});
  }
  std::int64_t least = files[0].size;
  std::int64_t most = 0;
  std::int64_t total = 0;
  for (const delta::AddFile& file : files) {
    least = std::min(least, file.size);
    most = std::max(most, file.size);
    total += file.size;
  }
  const auto count = static_cast<std::int64_t>(files.size());
  return Value(Value::List{Value(least), Value(most), Value(static_cast<double>(total) / static_cast<double>(count)),
                           Value(count), Value(total)});
}

}  // namespace

Result<RowsResult> Optimize(const TableContext& context, const TableRef& table, const OptimizeSpec& spec) {
  const std::int64_t start_ms = context.logs->context().clock->NowMillis();
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, log->Latest());
  FLEUVE_TRY(delta::CheckWritable(snapshot->protocol(), table.name));
  const delta::Metadata& metadata = snapshot->metadata();
  const std::vector<std::string> clustering = ClusteringColumns(*snapshot);
  const bool is_clustered = delta::HasFeature(snapshot->protocol(), "clustering") && !clustering.empty();
  const auto is_partition = [&](const std::string& name) {
    return std::any_of(metadata.partition_columns.begin(), metadata.partition_columns.end(),
                       [&](const auto& p) { return EqualsIgnoreAsciiCase(p, name); });
  };
  if (spec.full && !is_clustered) {
    return Error(ErrorKind::kUnsupported, "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
                 "OPTIMIZE FULL works only on clustered tables with clustering columns.");
  }
  if (is_clustered && !spec.zorder_by.empty()) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_CLUSTERING_WITH_ZORDER_BY",
                 "OPTIMIZE of a clustered table takes no ZORDER BY.");
  }
  if (is_clustered && spec.where) {
    return Error(ErrorKind::kUnsupported, "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
                 "OPTIMIZE of a clustered table takes no WHERE.");
  }
  for (const std::string& column : spec.zorder_by) {
    if (is_partition(column)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_ZORDERING_ON_PARTITION_COLUMN",
                   "The partition column " + column + " cannot be Z-ordered by.")
          .With("colName", column);
    }
    if (!types::FieldIndex(snapshot->schema(), column)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
                   "The Z-order column " + column + " does not exist.")
          .With("columnName", column);
    }
  }
  const plan::PlanPtr leaf = TableLeaf(snapshot, table.name);
  plan::ExprPtr condition;
  if (spec.where) {
    FLEUVE_ASSIGN(condition, AnalyzeSql(*spec.where, leaf, context.config));
    FLEUVE_ASSIGN(condition, plan::PadCharAttributes(condition, context.config));
    std::string other;
    plan::VisitExpr(condition, [&](const plan::Expr& e) {
      if (e.kind == plan::ExprKind::kAttribute && !is_partition(e.attribute.name)) {
        other = e.attribute.name;
      }
    });
    if (!other.empty()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_NON_PARTITION_COLUMN_REFERENCE",
                   "The predicate of OPTIMIZE refers to " + other + ", which is no partition column.")
          .With("columnName", other)
          .With("columnList", Join(metadata.partition_columns, ", "));
    }
  }
  FLEUVE_ASSIGN(const std::vector<delta::AddFile> considered, snapshot->Files(SplitAnd(condition), leaf->output));
  constexpr std::int64_t kTarget = std::int64_t{1} << 30;
  const bool orders = !spec.zorder_by.empty() || is_clustered;
  std::map<std::string, std::vector<delta::AddFile>> by_partition;
  for (const delta::AddFile& add : considered) {
    delta::PartitionValues sorted = add.partition_values;
    std::sort(sorted.begin(), sorted.end());
    if (spec.purge ? add.deletion_vector.has_value()
                   : (spec.rewrite_all || orders || add.size < kTarget || add.deletion_vector)) {
      by_partition[delta::PartitionFolder(sorted)].push_back(add);
    }
  }
  std::vector<std::vector<delta::AddFile>> bins;
  std::int64_t partitions = 0;
  for (auto& [folder, files] : by_partition) {
    std::sort(files.begin(), files.end(),
              [](const auto& a, const auto& b) { return a.size != b.size ? a.size < b.size : a.path < b.path; });
    const std::size_t before = bins.size();
    std::vector<delta::AddFile> bin;
    std::int64_t bytes = 0;
    const auto close = [&] {
      const bool worth =
          bin.size() > 1 ||
          (bin.size() == 1 && (spec.rewrite_all || spec.full || bin[0].deletion_vector || !spec.zorder_by.empty() ||
                               (is_clustered && bin[0].clustering_provider != "liquid")));
      if (is_clustered && !spec.full && !spec.purge && !spec.rewrite_all &&
          std::all_of(bin.begin(), bin.end(), [](const auto& add) { return add.clustering_provider == "liquid"; })) {
        bin.clear();
        bytes = 0;
        return;
      }
      if (worth) {
        bins.push_back(bin);
      }
      bin.clear();
      bytes = 0;
    };
    for (const delta::AddFile& add : files) {
      if (!orders && !bin.empty() && bytes + add.size > kTarget) {
        close();
      }
      bin.push_back(add);
      bytes += add.size;
    }
    close();
    partitions += bins.size() > before ? 1 : 0;
  }
  std::vector<delta::AddFile> removed;
  std::vector<delta::AddFile> added;
  std::vector<delta::Action> actions;
  std::vector<std::string> new_files;
  std::vector<std::string> new_folders;
  const std::int64_t now = context.logs->context().clock->NowMillis();
  std::int64_t vectors_removed = 0;
  for (const auto& bin : bins) {
    FLEUVE_ASSIGN(const FileRows scanned, ScanFiles(snapshot, bin, leaf->output, {.row_ids = true}));
    plan::PlanPtr rows = scanned.plan;
    const std::vector<std::string>& order = is_clustered ? clustering : spec.zorder_by;
    if (!order.empty()) {
      auto sort = std::make_shared<plan::LogicalPlan>();
      sort->kind = plan::PlanKind::kSort;
      sort->children = {rows};
      sort->output = rows->output;
      for (const std::string& column : order) {
        if (const auto at = types::FieldIndex(snapshot->schema(), column)) {
          sort->order_by.push_back({plan::MakeAttribute(leaf->output[*at]), true, true});
        }
      }
      if (!sort->order_by.empty()) {
        rows = sort;
      }
    }
    std::vector<plan::ExprPtr> columns;
    for (const plan::Attribute& attribute : leaf->output) {
      columns.push_back(plan::MakeAttribute(attribute));
    }
    types::Schema written_schema = snapshot->schema();
    std::vector<plan::ExprPtr> ids;
    for (const plan::Attribute& attribute : scanned.row_ids) {
      ids.push_back(plan::MakeAttribute(attribute));
    }
    AppendRowIds(metadata, std::move(ids), &columns, &written_schema);
    DataFileOptions options;
    options.data_change = false;
    FLEUVE_ASSIGN(DataFiles written, WriteDataFiles(context, table.location, metadata, snapshot->schema(),
                                                    ProjectTo(rows, std::move(columns), written_schema), {}, options));
    for (delta::AddFile& add : written.adds) {
      if (is_clustered) {
        add.clustering_provider = "liquid";
      }
      actions.emplace_back(add);
      added.push_back(add);
    }
    for (const delta::AddFile& add : bin) {
      delta::RemoveFile remove = RemovalOf(add, now, false);
      if (const std::int64_t records = delta::NumRecords(add); records >= 0) {
        remove.stats = "{\"numRecords\":" + std::to_string(records) + "}";
      }
      actions.emplace_back(std::move(remove));
      removed.push_back(add);
      vectors_removed += add.deletion_vector ? 1 : 0;
    }
    new_files.insert(new_files.end(), written.files.begin(), written.files.end());
    new_folders.insert(new_folders.end(), written.folders.begin(), written.folders.end());
  }
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  if (!actions.empty()) {
    delta::Transaction transaction(log, snapshot);
    transaction.ReadFiles(removed, SplitAnd(condition), leaf->output);
    delta::Operation operation = NamedOperation(context, spec.purge || spec.rewrite_all ? "REORG" : "OPTIMIZE");
    operation.tags = RowTrackingTags(*snapshot);
    Json parameters(Json::Object{});
    parameters.Set("predicate", Json(spec.where ? JsonList({*spec.where}) : "[]"));
    if (spec.purge || spec.rewrite_all) {
      parameters.Set("applyPurge", Json(spec.purge));
    } else {
      parameters.Set("zOrderBy", Json(JsonList(spec.zorder_by)));
      parameters.Set("clusterBy", Json(JsonList(is_clustered ? clustering : std::vector<std::string>())));
      parameters.Set("auto", Json(false));
      if (spec.full) {
        parameters.Set("isFull", Json(true));
      }
    }
    operation.parameters = std::move(parameters);
    std::int64_t removed_bytes = 0;
    std::int64_t added_bytes = 0;
    std::vector<std::int64_t> sizes;
    for (const auto& f : removed) {
      removed_bytes += f.size;
    }
    for (const auto& f : added) {
      added_bytes += f.size;
      sizes.push_back(f.size);
    }
    std::sort(sizes.begin(), sizes.end());
    const auto at = [&](double p) {
      return sizes.empty() ? 0 : sizes[static_cast<std::size_t>(p * static_cast<double>(sizes.size() - 1))];
    };
    operation.metrics = {{"numRemovedFiles", number(static_cast<std::int64_t>(removed.size()))},
                         {"numRemovedBytes", number(removed_bytes)},
                         {"p25FileSize", number(at(0.25))},
                         {"numDeletionVectorsRemoved", number(vectors_removed)},
                         {"minFileSize", number(at(0))},
                         {"numAddedFiles", number(static_cast<std::int64_t>(added.size()))},
                         {"maxFileSize", number(at(1))},
                         {"p75FileSize", number(at(0.75))},
                         {"p50FileSize", number(at(0.5))},
                         {"numAddedBytes", number(added_bytes)}};
    FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation), new_files, new_folders));
    log->WaitForBackground();
  }
  const DataType zorder_type = DataType::Struct(
      {Field("strategyName", DataType::String()),
       Field("inputCubeFiles", DataType::Struct({Field("num", DataType::Long()), Field("size", DataType::Long())})),
       Field("inputOtherFiles", DataType::Struct({Field("num", DataType::Long()), Field("size", DataType::Long())})),
       Field("inputNumCubes", DataType::Long()),
       Field("mergedFiles", DataType::Struct({Field("num", DataType::Long()), Field("size", DataType::Long())})),
       Field("numOutputCubes", DataType::Long()), Field("mergedNumCubes", DataType::Long())});
  const DataType vector_type = DataType::Struct(
      {Field("numDeletionVectorsRemoved", DataType::Long()), Field("numDeletionVectorRowsRemoved", DataType::Long())});
  const DataType metrics_type = DataType::Struct({Field("numFilesAdded", DataType::Long()),
                                                  Field("numFilesRemoved", DataType::Long()),
                                                  Field("filesAdded", FileSizes()),
                                                  Field("filesRemoved", FileSizes()),
                                                  Field("partitionsOptimized", DataType::Long()),
                                                  Field("zOrderStats", zorder_type),
                                                  Field("numBins", DataType::Long()),
                                                  Field("numBatches", DataType::Long()),
                                                  Field("totalConsideredFiles", DataType::Long()),
                                                  Field("totalFilesSkipped", DataType::Long()),
                                                  Field("preserveInsertionOrder", DataType::Boolean()),
                                                  Field("numFilesSkippedToReduceWriteAmplification", DataType::Long()),
                                                  Field("numBytesSkippedToReduceWriteAmplification", DataType::Long()),
                                                  Field("startTimeMs", DataType::Long()),
                                                  Field("endTimeMs", DataType::Long()),
                                                  Field("totalClusterParallelism", DataType::Long()),
                                                  Field("totalScheduledTasks", DataType::Long()),
                                                  Field("deletionVectorStats", vector_type),
                                                  Field("numTableColumns", DataType::Long()),
                                                  Field("numTableColumnsWithStats", DataType::Long())});
  std::int64_t removed_bytes = 0;
  for (const auto& f : removed) {
    removed_bytes += f.size;
  }
  Value zorder;
  if (!spec.zorder_by.empty()) {
    const Value none(Value::List{Value(0), Value(0)});
    const Value all(Value::List{Value(static_cast<std::int64_t>(removed.size())), Value(removed_bytes)});
    zorder = Value(
        Value::List{Value("all"), none, all, Value(0), all, Value(static_cast<std::int64_t>(bins.size())), Value()});
  }
  const auto columns = static_cast<std::int64_t>(snapshot->schema().fields().size());
  RowsResult result;
  result.schema = DataType::Struct({Field("path", DataType::String()), Field("metrics", metrics_type)});
  result.rows.push_back({Value(storage::ToFileUri(table.location.path)),
                         Value(Value::List{Value(static_cast<std::int64_t>(added.size())),
                                           Value(static_cast<std::int64_t>(removed.size())),
                                           SizesOf(added),
                                           SizesOf(removed),
                                           Value(partitions),
                                           std::move(zorder),
                                           Value(static_cast<std::int64_t>(bins.size())),
                                           Value(1),
                                           Value(static_cast<std::int64_t>(considered.size())),
                                           Value(static_cast<std::int64_t>(considered.size() - removed.size())),
                                           Value(!orders),
                                           Value(0),
                                           Value(0),
                                           Value(start_ms),
                                           Value(context.logs->context().clock->NowMillis()),
                                           Value(1),
                                           Value(0),
                                           Value(Value::List{Value(vectors_removed), Value(0)}),
                                           Value(columns),
                                           Value(columns)})});
  return result;
}

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

}  // namespace

namespace {

/// Files that commits of the log say were removed before `horizon`; vectors included.
Result<std::vector<storage::ObjectMeta>> RemovedByLog(const delta::DeltaLogPtr& log, const storage::Location& table,
                                                      std::int64_t horizon) {
  FLEUVE_ASSIGN(const std::vector<delta::VersionTime> versions, log->CommitsFrom(0));
  if (versions.empty() || versions.front().version != 0) {
    return Error(ErrorKind::kUnsupported, "DELTA_CANNOT_VACUUM_LITE",
                 "VACUUM LITE cannot find all removed files: the first commits of the log are gone. Run VACUUM once.");
  }
  std::set<std::string> paths;
  for (const delta::VersionTime& at : versions) {
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
          .With("configuredRetentionHours", std::to_string(retention / 3600000));
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
  for (const storage::ObjectMeta& entry : entries) {
    const std::string_view relative = std::string_view(entry.path).substr(table.location.path.size() + 1);
    if (entry.is_directory || IsHidden(relative) || kept.contains(entry.path) || entry.modified_ms >= horizon) {
      continue;
    }
    gone.push_back(entry);
    bytes += entry.size_bytes;
  }
  RowsResult result;
  result.schema = DataType::Struct({Field("path", DataType::String())});
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
  for (const storage::ObjectMeta& entry : gone) {
    const auto deleted = store.Delete(entry.path);
    if (!deleted.ok() && deleted.error().kind() != ErrorKind::kNotFound) {
      Json failed(Json::Object{});
      failed.Set("status", Json("FAILED"));
      FLEUVE_TRY(CommitVacuum(context, table, "VACUUM END", std::move(failed), {}));
      return deleted.error();
    }
  }
  Json end(Json::Object{});
  end.Set("status", Json("COMPLETED"));
  FLEUVE_TRY(CommitVacuum(
      context, table, "VACUUM END", std::move(end),
      {{"numDeletedFiles", number(static_cast<std::int64_t>(gone.size()))}, {"numVacuumedDirectories", "1"}}));
  log->WaitForBackground();
  result.rows.push_back({Value(storage::ToFileUri(table.location.path))});
  return result;
}

Result<RowsResult> Restore(const TableContext& context, const TableRef& table, const delta::TimeTravel& when) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const delta::SnapshotPtr current, log->Latest());
  FLEUVE_TRY(delta::CheckWritable(current->protocol(), table.name));
  auto found = delta::Travel(log, when);
  if (!found.ok()) {
    const Error& error = found.error();
    if (error.condition() == "DELTA_VERSION_NOT_FOUND") {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CANNOT_RESTORE_TABLE_VERSION",
                   "Cannot restore the table: " + error.message());
    }
    if (error.condition() == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION") {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
                   "Cannot restore the table: " + error.message());
    }
    if (error.condition() == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT") {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
                   "Cannot restore the table: " + error.message());
    }
    return error;
  }
  const delta::SnapshotPtr target = *found;
  const auto key = [](const delta::AddFile& add) {
    return add.path + '\0' + (add.deletion_vector ? add.deletion_vector->UniqueId() : std::string());
  };
  std::set<std::string> now_there;
  std::set<std::string> then_there;
  current->ForEachFile([&](const delta::AddFile& add) { now_there.insert(key(add)); }, false);
  target->ForEachFile([&](const delta::AddFile& add) { then_there.insert(key(add)); }, false);
  std::vector<delta::Action> actions;
  std::int64_t restored = 0;
  std::int64_t restored_bytes = 0;
  std::int64_t removed = 0;
  std::int64_t removed_bytes = 0;
  const std::int64_t now = context.logs->context().clock->NowMillis();
  Result<void> checked;
  target->ForEachFile([&](const delta::AddFile& add) {
    if (now_there.contains(key(add)) || !checked.ok()) {
      return;
    }
    auto path = delta::AbsolutePath(table.location, add.path);
    if (!path.ok()) {
      checked = std::move(path).error();
      return;
    }
    if (const auto head = table.location.store->Head(*path); !head.ok()) {
      checked = Error(head.error().kind(), "FAILED_READ_FILE.FILE_NOT_EXIST",
                      "The file " + *path + " that the restored version needs does not exist any more.")
                    .With("path", *path);
      return;
    }
    delta::AddFile again = add;
    again.data_change = true;
    actions.emplace_back(std::move(again));
    ++restored;
    restored_bytes += add.size;
  });
  FLEUVE_TRY(checked);
  current->ForEachFile([&](const delta::AddFile& add) {
    if (!then_there.contains(key(add))) {
      actions.emplace_back(RemovalOf(add, now, true));
      ++removed;
      removed_bytes += add.size;
    }
  });
  delta::Metadata metadata = target->metadata();
  // What identity columns have counted since is no part of the table that comes back.
  if (const types::Schema kept = KeepFarthestMarks(target->schema(), current->schema()); !(kept == target->schema())) {
    metadata.schema_string = SchemaText(kept);
  }
  const bool metadata_differs = !(current->metadata() == metadata);
  if (!actions.empty() || metadata_differs) {
    delta::Transaction transaction(log, current);
    transaction.ReadWholeTable();
    if (metadata_differs) {
      metadata.id = current->metadata().id;
      FLEUVE_TRY(transaction.UpdateMetadata(std::move(metadata)));
    }
    delta::Operation operation = NamedOperation(context, "RESTORE");
    Json parameters(Json::Object{});
    parameters.Set("version", when.version ? Json(*when.version) : Json());
    parameters.Set("timestamp",
                   when.timestamp_ms ? Json(types::TimestampNtzToString(*when.timestamp_ms * 1000)) : Json());
    operation.parameters = std::move(parameters);
    const auto number = [](std::int64_t n) { return std::to_string(n); };
    operation.metrics = {{"numRestoredFiles", number(restored)},
                         {"removedFilesSize", number(removed_bytes)},
                         {"numRemovedFiles", number(removed)},
                         {"restoredFilesSize", number(restored_bytes)},
                         {"numOfFilesAfterRestore", number(target->file_count())},
                         {"tableSizeAfterRestore", number(target->size_bytes())}};
    FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation)));
    log->WaitForBackground();
  }
  RowsResult result;
  result.schema = DataType::Struct(
      {Field("table_size_after_restore", DataType::Long()), Field("num_of_files_after_restore", DataType::Long()),
       Field("num_removed_files", DataType::Long()), Field("num_restored_files", DataType::Long()),
       Field("removed_files_size", DataType::Long()), Field("restored_files_size", DataType::Long())});
  result.rows.push_back({Value(target->size_bytes()), Value(target->file_count()), Value(removed), Value(restored),
                         Value(removed_bytes), Value(restored_bytes)});
  return result;
}

}  // namespace fleuve::tables
