#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/progress.h"
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
#include "tables/space_curve_internal.h"
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

/// Tags of files that one OPTIMIZE has clustered together, and the columns it did that by.
constexpr std::string_view kCubeId = "ZCUBE_ID";
constexpr std::string_view kCubeColumns = "ZCUBE_ZORDER_BY";

/// What OPTIMIZE of a clustered table says of the files it looked at.
class CubeCounts {
 public:
  static DataType Type() {
    const DataType files = DataType::Struct({Field("numFiles", DataType::Long()), Field("size", DataType::Long())});
    return DataType::Struct({Field("inputZCubeFiles", files), Field("inputOtherFiles", files),
                             Field("inputNumZCubes", DataType::Long()), Field("mergedFiles", files),
                             Field("numOutputZCubes", DataType::Long())});
  }

  void Count(const delta::AddFile& add, bool in_cube) {
    (in_cube ? cube_files_ : other_files_) += 1;
    (in_cube ? cube_bytes_ : other_bytes_) += add.size;
    if (const std::string* id = in_cube && add.tags ? delta::FindIn(*add.tags, kCubeId) : nullptr) {
      cubes_.insert(*id);
    }
  }

  Value Result(const std::vector<delta::AddFile>& merged, std::size_t written_cubes) const {
    std::int64_t merged_bytes = 0;
    for (const delta::AddFile& add : merged) {
      merged_bytes += add.size;
    }
    const auto pair = [](std::int64_t files, std::int64_t bytes) {
      return Value(Value::List{Value(files), Value(bytes)});
    };
    return Value(Value::List{pair(cube_files_, cube_bytes_), pair(other_files_, other_bytes_),
                             Value(static_cast<std::int64_t>(cubes_.size())),
                             pair(static_cast<std::int64_t>(merged.size()), merged_bytes),
                             Value(static_cast<std::int64_t>(written_cubes))});
  }

 private:
  std::int64_t cube_files_ = 0;
  std::int64_t cube_bytes_ = 0;
  std::int64_t other_files_ = 0;
  std::int64_t other_bytes_ = 0;
  std::set<std::string> cubes_;
};

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

/// A size in bytes that OPTIMIZE goes by: 1 GiB where the session does not say.
Result<std::int64_t> SizeSetting(const TableContext& context, const std::string& key) {
  const auto text = Conf(context.config, key);
  if (!text) {
    return std::int64_t{1} << 30;
  }
  std::int64_t bytes = 0;
  const auto end = std::from_chars(text->data(), text->data() + text->size(), bytes);
  if (end.ec != std::errc() || end.ptr != text->data() + text->size() || bytes <= 0) {
    return Error(ErrorKind::kInvalidArgument, "", key + " must be a positive number of bytes, not '" + *text + "'.");
  }
  return bytes;
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
    auto analyzed = AnalyzeSql(*spec.where, leaf, context.config);
    if (!analyzed.ok() && analyzed.error().condition().starts_with("UNRESOLVED_COLUMN")) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_NON_PARTITION_COLUMN_REFERENCE",
                   "The predicate of OPTIMIZE refers to a column that the table lacks: " + *spec.where + ".")
          .With("columnList", Join(metadata.partition_columns, ", "));
    }
    FLEUVE_ASSIGN(condition, std::move(analyzed));
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
  FLEUVE_ASSIGN(const std::int64_t target, SizeSetting(context, "spark.databricks.delta.optimize.maxFileSize"));
  FLEUVE_ASSIGN(const std::int64_t small, SizeSetting(context, "spark.databricks.delta.optimize.minFileSize"));
  const bool orders = !spec.zorder_by.empty() || is_clustered;
  const bool clusters = is_clustered && !spec.purge && !spec.rewrite_all;
  const std::string curve_columns = JsonList(clustering);
  const auto is_current = [&](const delta::AddFile& add) {
    const std::string* by = add.tags ? delta::FindIn(*add.tags, kCubeColumns) : nullptr;
    return add.clustering_provider == "liquid" && by != nullptr && *by == curve_columns;
  };
  CubeCounts cubes;
  std::map<std::string, std::vector<delta::AddFile>> by_partition;
  for (const delta::AddFile& add : considered) {
    delta::PartitionValues sorted = add.partition_values;
    std::sort(sorted.begin(), sorted.end());
    if (clusters) {
      cubes.Count(add, spec.full ? add.clustering_provider == "liquid" : is_current(add));
      if (!spec.full && add.clustering_provider == "liquid" && !is_current(add)) {
        continue;  // clustered by other columns: OPTIMIZE ... FULL
      }
    }
    if (spec.purge ? add.deletion_vector.has_value()
                   : (spec.rewrite_all || orders || add.size < small || add.deletion_vector)) {
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
          clusters ? !std::all_of(bin.begin(), bin.end(), is_current)
                   : bin.size() > 1 || (bin.size() == 1 && (spec.rewrite_all || spec.purge || !spec.zorder_by.empty()));
      if (worth) {
        bins.push_back(bin);
      }
      bin.clear();
      bytes = 0;
    };
    for (const delta::AddFile& add : files) {
      if (!orders && !bin.empty() && bytes + add.size > target) {
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
  std::int64_t vector_rows_removed = 0;
  std::int64_t all_bytes = 0;
  for (const auto& bin : bins) {
    for (const delta::AddFile& add : bin) {
      all_bytes += add.size;
    }
  }
  Progress progress("optimize: bytes written anew", all_bytes);
  for (const auto& bin : bins) {
    const std::vector<std::string>& order = is_clustered ? clustering : spec.zorder_by;
    FLEUVE_ASSIGN(const FileRows scanned,
                  ScanFiles(snapshot, bin, leaf->output, {.positions = !order.empty(), .row_ids = true}));
    plan::PlanPtr rows = scanned.plan;
    std::vector<plan::Attribute> order_columns;
    for (const std::string& column : order) {
      if (const auto at = types::FieldIndex(snapshot->schema(), column)) {
        order_columns.push_back(leaf->output[*at]);
      }
    }
    if (!order_columns.empty()) {
      std::int64_t row_count = 0;
      for (const delta::AddFile& add : bin) {
        row_count += std::max<std::int64_t>(0, delta::NumRecords(add));
      }
      auto sort = std::make_shared<plan::LogicalPlan>();
      sort->kind = plan::PlanKind::kSort;
      sort->children = {rows};
      sort->output = rows->output;
      FLEUVE_ASSIGN(sort->order_by, CurveOrder(context, rows, order_columns, scanned.row, row_count));
      rows = sort;
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
    options.max_file_bytes = orders ? target : 0;
    FLEUVE_ASSIGN(DataFiles written, WriteDataFiles(context, table.location, metadata, snapshot->schema(),
                                                    ProjectTo(rows, std::move(columns), written_schema), {}, options));
    const std::string cube = NewUuid();
    for (delta::AddFile& add : written.adds) {
      if (clusters) {
        add.clustering_provider = "liquid";
        add.tags = add.tags.value_or(delta::StringMap());
        delta::SetIn(*add.tags, kCubeId, cube);
        delta::SetIn(*add.tags, kCubeColumns, curve_columns);
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
      progress.Advance(add.size);
      vectors_removed += add.deletion_vector ? 1 : 0;
      vector_rows_removed += add.deletion_vector ? add.deletion_vector->cardinality : 0;
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
      if (is_clustered) {
        parameters.Set("isFull", Json(spec.full));
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
  const DataType parallelism_type = DataType::Struct(
      {Field("maxClusterActiveParallelism", DataType::Long()), Field("minClusterActiveParallelism", DataType::Long()),
       Field("maxSessionActiveParallelism", DataType::Long()), Field("minSessionActiveParallelism", DataType::Long())});
  const DataType metrics_type = DataType::Struct({Field("numFilesAdded", DataType::Long()),
                                                  Field("numFilesRemoved", DataType::Long()),
                                                  Field("filesAdded", FileSizes()),
                                                  Field("filesRemoved", FileSizes()),
                                                  Field("partitionsOptimized", DataType::Long()),
                                                  Field("zOrderStats", zorder_type),
                                                  Field("clusteringStats", CubeCounts::Type()),
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
                                                  Field("autoCompactParallelismStats", parallelism_type),
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
  Value vectors;
  if (vectors_removed > 0) {
    vectors = Value(Value::List{Value(vectors_removed), Value(vector_rows_removed)});
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
                                           clusters ? cubes.Result(removed, bins.size()) : Value(),
                                           Value(static_cast<std::int64_t>(bins.size())),
                                           Value(1),
                                           Value(static_cast<std::int64_t>(considered.size())),
                                           Value(static_cast<std::int64_t>(considered.size() - removed.size())),
                                           Value(false),
                                           Value(0),
                                           Value(0),
                                           Value(start_ms),
                                           Value(context.logs->context().clock->NowMillis()),
                                           Value(1),
                                           Value(0),
                                           Value(),
                                           std::move(vectors),
                                           Value(columns),
                                           Value(columns)})});
  return result;
}

namespace {

/// A condition of time travel as RESTORE says it.
Error RestoreError(const Error& error) {
  using Names = std::vector<std::pair<const char*, const char*>>;
  const auto renamed = [&](const char* condition, const Names& names) {
    Error out(ErrorKind::kInvalidArgument, condition, "Cannot restore the table: " + error.message());
    for (const auto& [to, from] : names) {
      for (const auto& [key, value] : error.parameters()) {
        if (key == from) {
          out = std::move(out).With(to, value);
        }
      }
    }
    return out;
  };
  if (error.condition() == "DELTA_VERSION_NOT_FOUND") {
    return renamed("DELTA_CANNOT_RESTORE_TABLE_VERSION",
                   {{"version", "userVersion"}, {"startVersion", "earliest"}, {"endVersion", "latest"}});
  }
  if (error.condition() == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION") {
    return renamed("DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
                   {{"requestedTimestamp", "userTimestamp"}, {"earliestTimestamp", "commitTs"}});
  }
  if (error.condition() == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT") {
    return renamed("DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
                   {{"requestedTimestamp", "providedTimestamp"}, {"latestTimestamp", "tableName"}})
        .Family(ErrorFamily::kAnalysis);
  }
  return error;
}

}  // namespace

Result<RowsResult> Restore(const TableContext& context, const TableRef& table, const delta::TimeTravel& when) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const delta::SnapshotPtr current, log->Latest());
  FLEUVE_TRY(delta::CheckWritable(current->protocol(), table.name));
  auto found = delta::Travel(log, when);
  if (!found.ok()) {
    return RestoreError(found.error());
  }
  const delta::SnapshotPtr target = *found;
  if (target->version() == current->version()) {
    return RowsResult{DataType::Struct({}), {}};  // nothing to do and, as in Spark, nothing to say
  }
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
  const bool may_miss = ConfFlag(context.config, "spark.sql.files.ignoreMissingFiles", false);
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
    if (const auto head = table.location.store->Head(*path); !head.ok() && !may_miss) {
      checked = Error(head.error().kind(), "",
                      "The file " + *path +
                          " that the restored version needs does not exist any more. To restore what is left, set "
                          "spark.sql.files.ignoreMissingFiles.")
                    .Family(ErrorFamily::kIllegalArgument);
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
  delta::Transaction transaction(log, current);
  transaction.ReadWholeTable();
  if (!(current->metadata() == metadata)) {
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
