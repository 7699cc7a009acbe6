#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "engine/engine.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"

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

Result<plan::PlanPtr> ScanFiles(const delta::SnapshotPtr& snapshot, const std::vector<delta::AddFile>& files,
                                const std::vector<plan::Attribute>& columns) {
  FLEUVE_ASSIGN(plan::FileScan scan, delta::MakeScan(snapshot->metadata()));
  scan.constants_schema = DataType::Struct({{"__file", DataType::Int(), false, Json()}});
  for (std::size_t i = 0; i < files.size(); ++i) {
    FLEUVE_ASSIGN(plan::ScanFile file, delta::MakeScanFile(scan, snapshot->metadata(), files[i], snapshot->location()));
    file.constants = {Value(static_cast<std::int64_t>(i))};
    scan.files.push_back(std::move(file));
  }
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kFileScan;
  std::map<std::string, plan::Attribute> by_name;
  const auto give = [&](const types::Schema& schema) {
    for (const types::StructField& field : schema.fields()) {
      plan::Attribute attribute;
      attribute.id = plan::NewAttributeId();
      attribute.name = field.name;
      attribute.type = field.type;
      attribute.nullable = field.nullable;
      by_name[AsciiLower(field.name)] = attribute;
      leaf->output.push_back(std::move(attribute));
    }
  };
  give(scan.data_schema);
  give(scan.partition_schema);
  give(scan.constants_schema);
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
  plan::Attribute file = leaf->output.back();
  exprs.push_back(plan::MakeAttribute(file));
  file.id = plan::NewAttributeId();
  output.push_back(std::move(file));
  return plan::MakeProject(leaf, std::move(exprs), std::move(output));
}

Result<TouchedFiles> FindTouched(const TableContext& context, const delta::SnapshotPtr& snapshot,
                                 const std::vector<plan::Attribute>& columns, const ExprPtr& condition) {
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
      touched.files.push_back({add, rows, rows});
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
      touched.files.push_back({add, live, live});
    } else {
      open.push_back(add);
    }
  }
  if (open.empty()) {
    return touched;
  }
  FLEUVE_ASSIGN(const plan::PlanPtr rows, ScanFiles(snapshot, open, columns));
  const plan::Attribute file = rows->output.back();
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kAggregate;
  node->children = {rows};
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
      touched.files.push_back({open[static_cast<std::size_t>(row[0].integer())], row[1].integer(), row[2].integer()});
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

Result<Rewrite> DeleteRows(const TableContext& context, const delta::SnapshotPtr& snapshot,
                           const std::vector<plan::Attribute>& columns, const ExprPtr& condition, bool data_change) {
  Rewrite out;
  FLEUVE_ASSIGN(const TouchedFiles touched, FindTouched(context, snapshot, columns, condition));
  out.candidates = touched.candidates;
  std::vector<delta::AddFile> partly;
  const std::int64_t now = context.logs->context().clock->NowMillis();
  for (const TouchedFiles::File& file : touched.files) {
    out.actions.emplace_back(RemovalOf(file.add, now, data_change));
    ++out.removed_files;
    out.removed_bytes += file.add.size;
    out.deleted_rows += file.matching;
    if (file.matching != file.rows) {
      partly.push_back(file.add);
      out.copied_rows += file.rows - file.matching;
    }
  }
  const bool changes = data_change && KeepsChanges(*snapshot);
  if (!partly.empty()) {
    FLEUVE_ASSIGN(const plan::PlanPtr rows, ScanFiles(snapshot, partly, columns));
    const ExprPtr yes = plan::MakeLiteral(Value(true), DataType::Boolean());
    const ExprPtr matches =
        plan::MakeCall("eqnullsafe", {condition, yes}, DataType::Boolean(), false, condition->can_fail);
    const ExprPtr stays = plan::MakeCall("not", {matches}, DataType::Boolean(), false, condition->can_fail);
    const auto table_columns = [&](const plan::PlanPtr& child, std::vector<ExprPtr> more, types::Schema schema) {
      std::vector<ExprPtr> exprs;
      std::vector<types::StructField> fields = snapshot->schema().fields();
      for (const plan::Attribute& attribute : columns) {
        exprs.push_back(plan::MakeAttribute(attribute));
      }
      for (std::size_t i = 0; i < more.size(); ++i) {
        exprs.push_back(std::move(more[i]));
        fields.push_back(schema.fields()[i]);
      }
      return ProjectTo(child, std::move(exprs), DataType::Struct(std::move(fields)));
    };
    DataFileOptions options;
    options.data_change = data_change;
    FLEUVE_ASSIGN(out.written, WriteDataFiles(context, snapshot->location(), snapshot->metadata(), snapshot->schema(),
                                              table_columns(plan::MakeFilter(rows, stays), {}, {}), {}, options));
    for (const delta::AddFile& add : out.written.adds) {
      out.actions.emplace_back(add);
    }
    if (changes) {
      // The change feed of the commit is only what stands in change files, so it holds the whole files' rows too.
      std::vector<delta::AddFile> all;
      for (const TouchedFiles::File& file : touched.files) {
        all.push_back(file.add);
      }
      FLEUVE_ASSIGN(const plan::PlanPtr changed, ScanFiles(snapshot, all, columns));
      DataFileOptions change_options;
      change_options.subfolder = "_change_data";
      change_options.statistics = false;
      FLEUVE_ASSIGN(
          out.changes,
          WriteDataFiles(context, snapshot->location(), snapshot->metadata(), snapshot->schema(),
                         table_columns(plan::MakeFilter(changed, matches),
                                       {plan::MakeLiteral(Value("delete"), DataType::String())},
                                       DataType::Struct({{"_change_type", DataType::String(), true, Json()}})),
                         {}, change_options));
      for (const delta::AddFile& add : out.changes.adds) {
        out.actions.emplace_back(delta::AddCdcFile{add.path, add.partition_values, add.size, std::nullopt});
      }
    }
  }
  return out;
}

}  // namespace fleuve::tables
