#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "delta/deletion_vector.h"
#include "delta/row_tracking.h"
#include "delta/row_tracking_scan.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "engine/engine.h"
#include "plan/analyzer.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::Value;

plan::PlanPtr TableLeaf(const delta::SnapshotPtr& snapshot, const std::string& name) {
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kTable;
  auto table = std::make_shared<delta::DeltaTable>(snapshot, name);
  leaf->output = plan::AttributesOf(table->schema());
  leaf->table = std::move(table);
  return leaf;
}

Result<FileRows> ScanFiles(const delta::SnapshotPtr& snapshot, const std::vector<delta::AddFile>& files,
                           const std::vector<plan::Attribute>& columns, const FileRowsOptions& options) {
  const delta::Metadata& metadata = snapshot->metadata();
  FLEUVE_ASSIGN(plan::FileScan scan, delta::MakeScan(metadata));
  const auto materialized = delta::MaterializedRowIdsOf(metadata);
  const bool row_ids = options.row_ids && delta::TracksRows(metadata) && materialized.has_value();
  const std::size_t own_columns = scan.data_schema.fields().size();
  scan.constants_schema = DataType::Struct({{"__file", DataType::Int(), false, Json()}});
  scan.with_row_index = options.positions;
  if (row_ids) {
    delta::AddRowIdColumns(*materialized, &scan);
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    FLEUVE_ASSIGN(plan::ScanFile file, delta::MakeScanFile(scan, metadata, files[i], snapshot->location()));
    file.constants = {Value(static_cast<std::int64_t>(i))};
    if (row_ids) {
      delta::AppendRowIdConstants(files[i], &file);
    }
    scan.files.push_back(std::move(file));
  }
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kFileScan;
  std::map<std::string, plan::Attribute> by_name;
  std::vector<plan::Attribute> constants_of;
  std::vector<plan::Attribute> materialized_of;
  const auto give = [&](const types::Schema& schema, bool is_constant) {
    for (std::size_t i = 0; i < schema.fields().size(); ++i) {
      const types::StructField& field = schema.fields()[i];
      plan::Attribute attribute;
      attribute.id = plan::NewAttributeId();
      attribute.name = field.name;
      attribute.type = field.type;
      attribute.nullable = field.nullable;
      if (is_constant) {
        constants_of.push_back(attribute);
      } else if (&schema == &scan.data_schema && i >= own_columns) {
        materialized_of.push_back(attribute);
      } else {
        by_name[AsciiLower(field.name)] = attribute;
      }
      leaf->output.push_back(std::move(attribute));
    }
  };
  give(scan.data_schema, false);
  give(scan.partition_schema, false);
  give(scan.constants_schema, true);
  plan::Attribute position;
  if (scan.with_row_index) {
    position.id = plan::NewAttributeId();
    position.name = "__row";
    position.type = DataType::Long();
    position.nullable = false;
    leaf->output.push_back(position);
  }
  leaf->scan = std::make_shared<const plan::FileScan>(std::move(scan));
  std::vector<ExprPtr> exprs;
  std::vector<plan::Attribute> output = columns;
  for (plan::Attribute& attribute : output) {
    const auto at = by_name.find(AsciiLower(attribute.name));
    if (at == by_name.end()) {
      return Error::Internal("the table has no column " + attribute.name);
    }
    exprs.push_back(plan::MakeAttribute(at->second));
  }
  FileRows out;
  const auto add = [&](const char* name, ExprPtr expr) {
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = name;
    attribute.type = expr->type;
    attribute.nullable = expr->nullable;
    exprs.push_back(std::move(expr));
    output.push_back(attribute);
    return attribute;
  };
  out.file = add("__file", plan::MakeAttribute(constants_of[0]));
  if (options.positions) {
    out.row = add("__row", plan::MakeAttribute(position));
  }
  if (row_ids) {
    const delta::RowIdValues values = delta::RowIdValuesOf(
        plan::MakeAttribute(materialized_of[0]), plan::MakeAttribute(materialized_of[1]),
        plan::MakeAttribute(constants_of[1]), plan::MakeAttribute(constants_of[2]), plan::MakeAttribute(position));
    out.row_ids = {add("__row_id", values.row_id), add("__row_version", values.commit_version)};
  }
  out.plan = plan::MakeProject(leaf, std::move(exprs), std::move(output));
  return out;
}

namespace {

/// The values of a fixed-width column of a batch.
template <typename T>
const T* ValuesOf(const columnar::RecordBatch& batch, int column) {
  const auto* array = batch.array->get()->children[column];
  return static_cast<const T*>(array->buffers[1]) + array->offset + batch.array->get()->offset;
}

/// The numbers of a column that are not NULL.
void CollectNumbers(const columnar::RecordBatch& batch, int column, std::unordered_set<std::int64_t>* out) {
  const auto* array = batch.array->get()->children[column];
  const auto* valid = static_cast<const std::uint8_t*>(array->buffers[0]);
  const std::int64_t offset = array->offset + batch.array->get()->offset;
  const auto* values = ValuesOf<std::int64_t>(batch, column);
  for (std::int64_t i = 0; i < batch.row_count(); ++i) {
    const std::int64_t at = offset + i;
    if (valid == nullptr || (valid[at >> 3] >> (at & 7) & 1) != 0) {
      out->insert(values[i]);
    }
  }
}

void SortAll(std::vector<RowNumbers>* lists) {
  for (RowNumbers& rows : *lists) {
    std::sort(rows.begin(), rows.end());
  }
}

}  // namespace

Result<FoundRows> CollectRows(const TableContext& context, const plan::PlanPtr& rows, std::size_t file_count) {
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(rows, context.config));
  engine::ExecuteOptions options;
  options.token = context.token;
  options.batch_rows = 65536;
  FLEUVE_ASSIGN(auto reader, context.engine->Execute(prepared, options));
  const bool has_codes = rows->output.size() > 2;
  FoundRows found;
  found.rows.resize(file_count);
  found.changed.resize(has_codes ? file_count : 0);
  while (true) {
    FLEUVE_ASSIGN(const auto batch, reader->Next());
    if (!batch) {
      break;
    }
    const auto* files = ValuesOf<std::int32_t>(*batch, 0);
    const auto* numbers = ValuesOf<std::int64_t>(*batch, 1);
    const auto* codes = has_codes ? ValuesOf<std::int32_t>(*batch, 2) : nullptr;
    if (rows->output.size() > 3) {
      CollectNumbers(*batch, 3, &found.numbers);
    }
    for (std::int64_t i = 0; i < batch->row_count(); ++i) {
      const auto file = static_cast<std::size_t>(files[i]);
      found.rows[file].push_back(static_cast<std::uint64_t>(numbers[i]));
      if (has_codes) {
        ++found.codes[codes[i]];
        if (codes[i] != 0) {
          found.changed[file].push_back(static_cast<std::uint64_t>(numbers[i]));
        }
      }
    }
  }
  SortAll(&found.rows);
  SortAll(&found.changed);
  return found;
}

Result<TouchedFiles> FindTouched(const TableContext& context, const delta::SnapshotPtr& snapshot,
                                 const std::vector<plan::Attribute>& columns, const ExprPtr& condition,
                                 bool positions) {
  TouchedFiles touched;
  FLEUVE_ASSIGN(touched.candidates, snapshot->Files(SplitAnd(condition), columns));
  if (touched.candidates.empty()) {
    return touched;
  }
  if (condition == nullptr) {
    for (const delta::AddFile& add : touched.candidates) {
      std::int64_t rows = delta::NumRecords(add);
      if (rows >= 0 && add.deletion_vector) {
        rows -= add.deletion_vector->cardinality;
      }
      touched.files.push_back({add, rows, rows, {}});
    }
    return touched;
  }
  // Files of which every row matches are known by their partition values and statistics alone.
  const ExprPtr is_true = plan::MakeCall("eqnullsafe", {condition, plan::MakeLiteral(Value(true), DataType::Boolean())},
                                         DataType::Boolean(), false);
  FLEUVE_ASSIGN(const delta::FileFilter some_stay,
                delta::FileFilter::Make(snapshot->metadata(), snapshot->schema(),
                                        {plan::MakeCall("not", {is_true}, DataType::Boolean(), false)}, columns));
  std::vector<delta::AddFile> open;
  for (const delta::AddFile& add : touched.candidates) {
    const std::int64_t records = delta::NumRecords(add);
    if (records >= 0 && !some_stay.MayMatch(add)) {
      const std::int64_t live = records - (add.deletion_vector ? add.deletion_vector->cardinality : 0);
      touched.files.push_back({add, live, live, {}});
    } else {
      open.push_back(add);
    }
  }
  if (open.empty()) {
    return touched;
  }
  FLEUVE_ASSIGN(const FileRows rows, ScanFiles(snapshot, open, columns, {.positions = positions}));
  const plan::Attribute& file = rows.file;
  if (positions && std::all_of(open.begin(), open.end(), [](const auto& add) { return delta::NumRecords(add) >= 0; })) {
    const plan::PlanPtr matches =
        plan::MakeProject(plan::MakeFilter(rows.plan, condition),
                          {plan::MakeAttribute(rows.file), plan::MakeAttribute(rows.row)}, {rows.file, rows.row});
    FLEUVE_ASSIGN(FoundRows found_rows, CollectRows(context, matches, open.size()));
    std::vector<RowNumbers>& found = found_rows.rows;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (!found[i].empty()) {
        const std::int64_t live =
            delta::NumRecords(open[i]) - (open[i].deletion_vector ? open[i].deletion_vector->cardinality : 0);
        const auto matching = static_cast<std::int64_t>(found[i].size());
        touched.files.push_back({open[i], matching, live, matching < live ? std::move(found[i]) : RowNumbers()});
      }
    }
    return touched;
  }
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kAggregate;
  node->children = {rows.plan};
  node->grouping = {plan::MakeAttribute(file)};
  FLEUVE_ASSIGN(const ExprPtr matching, CountIf(condition, context.config));
  FLEUVE_ASSIGN(const ExprPtr all, CountIf(plan::MakeLiteral(Value(true), DataType::Boolean()), context.config));
  node->aggregates = {matching, all};
  for (const auto& [name, type] : {std::pair<const char*, DataType>{"file", DataType::Int()},
                                   {"matching", DataType::Long()},
                                   {"rows", DataType::Long()}}) {
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = name;
    attribute.type = type;
    node->output.push_back(std::move(attribute));
  }
  FLEUVE_ASSIGN(auto result, RunRows(context, node));
  std::sort(result.begin(), result.end(),
            [](const Value::List& a, const Value::List& b) { return a[0].integer() < b[0].integer(); });
  for (const Value::List& row : result) {
    if (row[1].integer() > 0) {
      touched.files.push_back(
          {open[static_cast<std::size_t>(row[0].integer())], row[1].integer(), row[2].integer(), {}});
    }
  }
  return touched;
}

delta::RemoveFile RemovalOf(const delta::AddFile& add, std::int64_t now_ms, bool data_change) {
  delta::RemoveFile remove;
  remove.path = add.path;
  remove.deletion_timestamp = now_ms;
  remove.data_change = data_change;
  remove.extended_file_metadata = true;
  remove.partition_values = add.partition_values;
  remove.size = add.size;
  remove.tags = add.tags;
  remove.deletion_vector = add.deletion_vector;
  remove.base_row_id = add.base_row_id;
  remove.default_row_commit_version = add.default_row_commit_version;
  return remove;
}

bool KeepsChanges(const delta::Snapshot& snapshot) {
  return snapshot.BooleanProperty("delta.enableChangeDataFeed", false);
}

bool MarksRows(const TableContext& context, const delta::Snapshot& snapshot, std::string_view statement) {
  return snapshot.BooleanProperty("delta.enableDeletionVectors", false) &&
         delta::HasFeature(snapshot.protocol(), "deletionVectors") &&
         ConfFlag(context.config, "spark.databricks.delta." + std::string(statement) + ".deletionVectors.persistent",
                  true);
}

namespace {

/// Statistics of a file some of whose rows are gone: the bounds are no longer tight.
std::string WideStatistics(const std::string& stats) {
  std::string out = stats;
  static constexpr std::string_view kTight = "\"tightBounds\":true";
  if (const std::size_t at = out.find(kTight); at != std::string::npos) {
    out.replace(at, kTight.size(), "\"tightBounds\":false");
  } else if (out.find("\"tightBounds\":") == std::string::npos && out.size() > 2 && out.back() == '}') {
    out.insert(out.size() - 1, ",\"tightBounds\":false");
  }
  return out;
}

}  // namespace

Result<MarkedRows> MarkRows(const TableContext& context, const delta::SnapshotPtr& snapshot,
                            const std::vector<delta::AddFile>& files, const std::vector<RowNumbers>& rows,
                            bool data_change) {
  MarkedRows out;
  const std::int64_t now = context.logs->context().clock->NowMillis();
  std::vector<RowNumbers> vectors;
  std::vector<delta::AddFile> marked;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (rows[i].empty()) {
      continue;
    }
    const delta::AddFile& add = files[i];
    delta::RemoveFile remove = RemovalOf(add, now, data_change);
    RowNumbers gone = rows[i];
    if (add.deletion_vector) {
      FLEUVE_ASSIGN(const auto before, delta::LoadDeletionVector(*add.deletion_vector, snapshot->location()));
      RowNumbers both;
      both.reserve(gone.size() + before->rows().size());
      std::set_union(gone.begin(), gone.end(), before->rows().begin(), before->rows().end(), std::back_inserter(both));
      gone = std::move(both);
      ++out.vectors_removed;
    }
    const std::int64_t records = delta::NumRecords(add);
    if (records >= 0) {
      remove.stats = "{\"numRecords\":" + std::to_string(records) + "}";
    }
    out.actions.emplace_back(std::move(remove));
    if (records >= 0 && static_cast<std::int64_t>(gone.size()) >= records) {
      ++out.removed_files;
      out.removed_bytes += add.size;
      continue;
    }
    ++out.vectors_added;
    out.vectors_updated += add.deletion_vector ? 1 : 0;
    vectors.push_back(std::move(gone));
    marked.push_back(add);
  }
  if (vectors.empty()) {
    return out;
  }
  FLEUVE_ASSIGN(const delta::WrittenDeletionVectors written,
                delta::WriteDeletionVectors(vectors, snapshot->location()));
  out.vector_file = written.file;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    marked[i].deletion_vector = written.descriptors[i];
    marked[i].stats = WideStatistics(marked[i].stats);
    marked[i].data_change = data_change;
    out.actions.emplace_back(std::move(marked[i]));
  }
  return out;
}

void AppendRowIds(const delta::Metadata& metadata, std::vector<ExprPtr> values, std::vector<ExprPtr>* exprs,
                  types::Schema* schema) {
  const auto names = delta::MaterializedRowIdsOf(metadata);
  if (values.empty() || !names) {
    return;
  }
  std::vector<types::StructField> fields = schema->fields();
  fields.push_back({names->row_id, DataType::Long(), true, Json(Json::Object{})});
  fields.push_back({names->commit_version, DataType::Long(), true, Json(Json::Object{})});
  *schema = DataType::Struct(std::move(fields));
  exprs->push_back(std::move(values[0]));
  exprs->push_back(std::move(values[1]));
}

delta::StringMap RowTrackingTags(const delta::Snapshot& snapshot) {
  if (!delta::TracksRows(snapshot.metadata())) {
    return {};
  }
  return {{"delta.rowTracking.preserved", "true"}};
}

Result<DataFiles> WriteChangeFiles(const TableContext& context, const delta::SnapshotPtr& snapshot,
                                   const plan::PlanPtr& rows, const std::vector<plan::Attribute>& columns,
                                   const char* change_type, std::vector<delta::Action>* actions) {
  std::vector<ExprPtr> values;
  std::vector<types::StructField> fields = snapshot->schema().fields();
  for (const plan::Attribute& attribute : columns) {
    values.push_back(plan::MakeAttribute(attribute));
  }
  values.push_back(plan::MakeLiteral(Value(change_type), DataType::String()));
  fields.push_back({"_change_type", DataType::String(), true, Json()});
  DataFileOptions options;
  options.subfolder = "_change_data";
  options.statistics = false;
  FLEUVE_ASSIGN(DataFiles written,
                WriteDataFiles(context, snapshot->location(), snapshot->metadata(), snapshot->schema(),
                               ProjectTo(rows, std::move(values), DataType::Struct(std::move(fields))), {}, options));
  for (const delta::AddFile& add : written.adds) {
    actions->emplace_back(delta::AddCdcFile{add.path, add.partition_values, add.size, std::nullopt});
  }
  return written;
}

Result<Rewrite> DeleteRows(const TableContext& context, const delta::SnapshotPtr& snapshot,
                           const std::vector<plan::Attribute>& columns, const ExprPtr& condition, bool data_change) {
  Rewrite out;
  const bool marks = MarksRows(context, *snapshot, "delete");
  FLEUVE_ASSIGN(const TouchedFiles touched, FindTouched(context, snapshot, columns, condition, marks));
  out.candidates = touched.candidates;
  std::vector<delta::AddFile> partly;
  std::vector<delta::AddFile> marked;
  std::vector<RowNumbers> marked_rows;
  const std::int64_t now = context.logs->context().clock->NowMillis();
  for (const TouchedFiles::File& file : touched.files) {
    out.deleted_rows += std::max<std::int64_t>(file.matching, 0);
    if (file.matching != file.rows && !file.positions.empty()) {
      marked.push_back(file.add);
      marked_rows.push_back(file.positions);
      continue;
    }
    out.actions.emplace_back(RemovalOf(file.add, now, data_change));
    ++out.removed_files;
    out.removed_bytes += file.add.size;
    out.vectors_removed += file.add.deletion_vector ? 1 : 0;
    if (file.matching != file.rows) {
      partly.push_back(file.add);
      out.copied_rows += file.rows - file.matching;
    }
  }
  if (!marked.empty()) {
    FLEUVE_ASSIGN(MarkedRows rows, MarkRows(context, snapshot, marked, marked_rows, data_change));
    out.actions.insert(out.actions.end(), std::make_move_iterator(rows.actions.begin()),
                       std::make_move_iterator(rows.actions.end()));
    out.removed_files += rows.removed_files;
    out.removed_bytes += rows.removed_bytes;
    out.vectors_added += rows.vectors_added;
    out.vectors_updated += rows.vectors_updated;
    out.vectors_removed += rows.vectors_removed;
    if (!rows.vector_file.empty()) {
      out.written.files.push_back(rows.vector_file);
      out.written.folders.push_back(snapshot->location().path);
    }
  }
  // With vectors the feed is read from the vectors themselves.
  const bool changes = data_change && KeepsChanges(*snapshot);
  // Files of which nothing stays are rewritten too as Spark does it: the one file of their rest has no row.
  const bool reads_rows = condition != nullptr && plan::AnyExpr(condition, [](const plan::Expr& part) {
                            return part.kind == plan::ExprKind::kAttribute;
                          });
  const bool empties =
      partly.empty() && out.removed_files > 0 && !marks && reads_rows && snapshot->metadata().partition_columns.empty();
  if (!partly.empty() || empties) {
    FLEUVE_ASSIGN(const FileRows rows, ScanFiles(snapshot, partly, columns, {.row_ids = true}));
    const ExprPtr yes = plan::MakeLiteral(Value(true), DataType::Boolean());
    const ExprPtr matches =
        plan::MakeCall("eqnullsafe", {condition, yes}, DataType::Boolean(), false, condition->can_fail);
    const ExprPtr stays = plan::MakeCall("not", {matches}, DataType::Boolean(), false, condition->can_fail);
    std::vector<ExprPtr> kept;
    for (const plan::Attribute& attribute : columns) {
      kept.push_back(plan::MakeAttribute(attribute));
    }
    std::vector<ExprPtr> ids;
    for (const plan::Attribute& attribute : rows.row_ids) {
      ids.push_back(plan::MakeAttribute(attribute));
    }
    types::Schema written_schema = snapshot->schema();
    AppendRowIds(snapshot->metadata(), ids, &kept, &written_schema);
    DataFileOptions options;
    options.data_change = data_change;
    options.empty_file = empties;
    FLEUVE_ASSIGN(
        DataFiles written,
        WriteDataFiles(context, snapshot->location(), snapshot->metadata(), snapshot->schema(),
                       ProjectTo(plan::MakeFilter(rows.plan, stays), std::move(kept), written_schema), {}, options));
    for (const delta::AddFile& add : written.adds) {
      out.actions.emplace_back(add);
    }
    written.files.insert(written.files.end(), out.written.files.begin(), out.written.files.end());
    written.folders.insert(written.folders.end(), out.written.folders.begin(), out.written.folders.end());
    out.written = std::move(written);
    if (changes && !empties) {
      // The change feed of the commit is only what stands in change files, so it holds the whole files' rows too.
      std::vector<delta::AddFile> all;
      for (const TouchedFiles::File& file : touched.files) {
        all.push_back(file.add);
      }
      FLEUVE_ASSIGN(const FileRows changed, ScanFiles(snapshot, all, columns));
      FLEUVE_ASSIGN(out.changes, WriteChangeFiles(context, snapshot, plan::MakeFilter(changed.plan, matches), columns,
                                                  "delete", &out.actions));
    }
  }
  return out;
}

}  // namespace fleuve::tables
