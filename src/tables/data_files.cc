#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/bytes.h"
#include "columnar/ipc.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "engine/engine.h"
#include "plan/analyzer.h"
#include "plan/call_function.h"
#include "plan/write_tasks.h"
#include "tables/data_files_internal.h"
#include "tables/file_statistics_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::TypeKind;
using types::Value;

namespace {

void CollectNotNull(const types::Schema& schema, const std::function<ExprPtr(std::size_t)>& column,
                    std::vector<std::pair<std::string, ExprPtr>>& out) {
  const std::function<void(const DataType&, const ExprPtr&, const std::string&)> visit =
      [&](const DataType& type, const ExprPtr& parent, const std::string& prefix) {
        for (std::size_t i = 0; i < type.fields().size(); ++i) {
          const StructField& field = type.fields()[i];
          const ExprPtr value = parent == nullptr ? column(i) : plan::MakeGetField(parent, static_cast<int>(i));
          const std::string name = prefix.empty() ? field.name : prefix + "." + field.name;
          if (!field.nullable) {
            out.emplace_back(name, value);
          }
          if (field.type.Is(TypeKind::kStruct)) {
            visit(field.type, value, name);
          }
        }
      };
  visit(schema, nullptr, "");
}

/// No text is longer than its declared type allows; null where the type sets no length.
Result<ExprPtr> FitsLengths(const ExprPtr& value, const DataType& declared, const plan::AnalysisConfig& config) {
  if (declared.Is(TypeKind::kChar) || declared.Is(TypeKind::kVarchar)) {
    FLEUVE_ASSIGN(const ExprPtr length, plan::CallFunction("length", {value}, config));
    const ExprPtr fits = plan::MakeCall(
        "le", {length, plan::MakeLiteral(Value(static_cast<std::int64_t>(declared.length())), DataType::Int())},
        DataType::Boolean(), true);
    return plan::MakeCall("or", {plan::MakeCall("isnull", {value}, DataType::Boolean(), false), fits},
                          DataType::Boolean(), true);
  }
  if (declared.Is(TypeKind::kStruct) && value->type.Is(TypeKind::kStruct)) {
    ExprPtr all;
    for (std::size_t i = 0; i < declared.fields().size() && i < value->type.fields().size(); ++i) {
      FLEUVE_ASSIGN(ExprPtr part,
                    FitsLengths(plan::MakeGetField(value, static_cast<int>(i)), declared.fields()[i].type, config));
      if (part != nullptr) {
        all = all == nullptr ? std::move(part) : plan::MakeAnd(all, std::move(part));
      }
    }
    return all;
  }
  const std::string text = AsciiLower(declared.SimpleString());
  if (text.find("char(") != std::string::npos) {
    return Error::Unsupported("writing to CHAR and VARCHAR values inside arrays and maps (" + text + ")");
  }
  return ExprPtr();
}

}  // namespace

plan::PlanPtr ProjectTo(const plan::PlanPtr& child, std::vector<ExprPtr> exprs, const types::Schema& schema) {
  std::vector<plan::Attribute> output;
  for (std::size_t i = 0; i < exprs.size(); ++i) {
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = schema.fields()[i].name;
    attribute.type = exprs[i]->type;
    attribute.nullable = exprs[i]->nullable;
    output.push_back(std::move(attribute));
  }
  return plan::MakeProject(child, std::move(exprs), std::move(output));
}

Result<ExprPtr> CountIf(const ExprPtr& condition, const plan::AnalysisConfig& config) {
  return plan::CallFunction("count_if", {condition}, config);
}

Result<ExprPtr> CountViolations(const ExprPtr& condition, const plan::AnalysisConfig& config) {
  const ExprPtr yes = plan::MakeLiteral(Value(true), DataType::Boolean());
  const ExprPtr kept = plan::MakeCall("eqnullsafe", {condition, yes}, DataType::Boolean(), false, condition->can_fail);
  return CountIf(plan::MakeCall("not", {kept}, DataType::Boolean(), false, condition->can_fail), config);
}

Result<plan::PlanPtr> AggregateAll(const plan::PlanPtr& child, const std::vector<ExprPtr>& aggregates) {
  // Function builders may give an expression over aggregates: those go below a projection.
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kAggregate;
  node->children = {child};
  std::vector<ExprPtr> above;
  std::vector<StructField> fields;
  for (const ExprPtr& expr : aggregates) {
    above.push_back(plan::RewriteExpr(expr, [&](const ExprPtr& e) -> ExprPtr {
      if (e->kind != plan::ExprKind::kAggregate) {
        return nullptr;
      }
      plan::Attribute attribute;
      attribute.id = plan::NewAttributeId();
      attribute.name = "a" + std::to_string(node->output.size());
      attribute.type = e->type;
      attribute.nullable = e->nullable;
      node->aggregates.push_back(e);
      node->output.push_back(attribute);
      return plan::MakeAttribute(attribute);
    }));
    fields.push_back({"c" + std::to_string(fields.size()), expr->type, true, Json()});
  }
  return ProjectTo(node, std::move(above), DataType::Struct(std::move(fields)));
}

Result<std::vector<Value::List>> RunRows(const TableContext& context, const plan::PlanPtr& plan) {
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(plan, context.config));
  engine::ExecuteOptions options;
  options.token = context.token;
  FLEUVE_ASSIGN(auto reader, context.engine->Execute(prepared, options));
  FLEUVE_ASSIGN(const auto batches, engine::ReadAll(*reader));
  std::vector<Value::List> rows;
  for (const auto& batch : batches) {
    FLEUVE_ASSIGN(auto some, columnar::RowsFromBatch(batch));
    rows.insert(rows.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return rows;
}

Result<std::vector<RowConstraint>> ConstraintsOf(const delta::Metadata& metadata, const types::Schema& schema,
                                                 const plan::PlanPtr& rows, const plan::AnalysisConfig& config) {
  std::vector<RowConstraint> constraints;
  // Of several rules that a row breaks the first is told: CHECK constraints come first.
  for (const auto& [key, sql] : metadata.configuration) {
    if (!key.starts_with("delta.constraints.")) {
      continue;
    }
    FLEUVE_ASSIGN(ExprPtr condition, AnalyzeSql(sql, rows, config));
    constraints.push_back({std::move(condition),
                           Error(ErrorKind::kInvalidArgument, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
                                 "The data to write breaks the CHECK constraint " + key.substr(18) + " (" + sql + ").")
                               .With("constraintName", key.substr(18))
                               .With("expression", sql)});
  }
  const auto column = [&](std::size_t i) { return plan::MakeAttribute(rows->output[i]); };
  std::vector<std::pair<std::string, ExprPtr>> not_null;
  CollectNotNull(schema, column, not_null);
  for (auto& [name, value] : not_null) {
    constraints.push_back({plan::MakeCall("isnotnull", {value}, DataType::Boolean(), false),
                           Error(ErrorKind::kInvalidArgument, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
                                 "The column " + name + " must not be NULL, and the data to write has NULL there.")
                               .With("columnName", name)});
  }
  for (std::size_t i = 0; i < schema.fields().size(); ++i) {
    const StructField& field = schema.fields()[i];
    if (const std::string* text = FieldText(field, "delta.invariants")) {
      FLEUVE_ASSIGN(const Json json, Json::Parse(*text));
      const std::string& sql = json["expression"]["expression"].AsString();
      FLEUVE_ASSIGN(ExprPtr condition, AnalyzeSql(sql, rows, config));
      constraints.push_back(
          {std::move(condition), Error(ErrorKind::kInvalidArgument, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
                                       "The data to write breaks the rule " + sql + " of column " + field.name + ".")});
    }
    if (const std::string* text = FieldText(field, "__CHAR_VARCHAR_TYPE_STRING")) {
      FLEUVE_ASSIGN(const DataType declared, DataType::FromDdl(*text));
      FLEUVE_ASSIGN(ExprPtr fits, FitsLengths(column(i), declared, config));
      if (fits != nullptr) {
        constraints.push_back({std::move(fits), Error(ErrorKind::kInvalidArgument, "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
                                                      "A value of column " + field.name + " is longer than its type " +
                                                          *text + " allows.")
                                                    .With("value", "")
                                                    .With("expr", field.name)});
      }
    }
    if (const std::string* sql = FieldText(field, "delta.generationExpression")) {
      FLEUVE_ASSIGN(ExprPtr made, AnalyzeSql(*sql, rows, config));
      FLEUVE_ASSIGN(made, AlignExpr(made, field.type, true, config));
      constraints.push_back(
          {plan::MakeCall("eqnullsafe", {column(i), made}, DataType::Boolean(), false, made->can_fail),
           Error(ErrorKind::kInvalidArgument, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
                 "A value of the generated column " + field.name + " is not what " + *sql + " gives.")});
    }
  }
  return constraints;
}

Result<DataFiles> WriteDataFiles(const TableContext& context, const storage::Location& table,
                                 const delta::Metadata& metadata, const types::Schema& schema,
                                 const plan::PlanPtr& rows, const std::vector<RowConstraint>& constraints,
                                 const DataFileOptions& options) {
  if (!table.store->is_local()) {
    return Error::Unsupported("data files outside the local file system");
  }
  plan::PlanPtr plan = rows;
  if (!constraints.empty()) {
    auto node = std::make_shared<plan::LogicalPlan>();
    node->kind = plan::PlanKind::kMetrics;
    node->children = {plan};
    node->output = plan->output;
    node->name = "fleuve.constraints";
    for (const RowConstraint& constraint : constraints) {
      FLEUVE_ASSIGN(ExprPtr count, CountViolations(constraint.condition, context.config));
      node->exprs.push_back(std::move(count));
    }
    plan = node;
  }
  const bool mapped = delta::ColumnMappingMode(metadata) != "none";
  // Void columns are not stored.
  std::vector<ExprPtr> kept;
  std::vector<StructField> kept_fields;
  std::vector<StructField> data_fields;
  bool has_void = false;
  for (std::size_t i = 0; i < rows->output.size(); ++i) {
    StructField field = i < schema.fields().size() ? schema.fields()[i] : plan::FieldOf(rows->output[i]);
    if (field.type.Is(TypeKind::kVoid)) {
      has_void = true;
      continue;
    }
    kept.push_back(plan::MakeAttribute(plan->output[i]));
    kept_fields.push_back(field);
    if (i >= schema.fields().size() || !IsPartition(metadata, field.name)) {
      data_fields.push_back(std::move(field));
    }
  }
  if (has_void) {
    plan = ProjectTo(plan, std::move(kept), DataType::Struct(kept_fields));
  }
  plan::TaskedPlan tasked{plan, 1};
  if (options.by_task) {
    FLEUVE_ASSIGN(tasked, plan::SpreadOverTasks(plan, context.config));
  }
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(tasked.plan, context.config));

  engine::WriteSpec spec;
  spec.format = plan::FileFormat::kParquet;
  spec.folder = table.path + (options.subfolder.empty() ? "" : "/" + options.subfolder);
  spec.partition_columns = metadata.partition_columns;
  spec.partition_folders = !mapped;
  spec.compression = options.compression;
  spec.max_file_rows = options.max_file_rows;
  spec.target_file_bytes = options.max_file_bytes;
  spec.by_task = tasked.tasks > 1;
  spec.write_empty_file = options.empty_file && metadata.partition_columns.empty();
  spec.session_zone = context.config.session_zone;
  if (mapped) {
    spec.physical_schema = delta::PhysicalSchemaOf(DataType::Struct(data_fields));
  }
  // Row ids and deletion vectors need the number of rows at least.
  const bool collects = options.statistics && ConfFlag(context.config, "spark.databricks.delta.stats.collect", true);
  const bool needs_count = delta::FindIn(metadata.configuration, "delta.enableRowTracking") != nullptr ||
                           delta::FindIn(metadata.configuration, "delta.enableDeletionVectors") != nullptr;
  const std::vector<StatisticsLeaf> leaves = collects ? IndexedLeaves(metadata, schema) : std::vector<StatisticsLeaf>();
  spec.statistics_columns = leaves.empty() ? 0 : -1;
  engine::ExecuteOptions run;
  run.token = context.token;
  run.observer = context.observer ? context.observer : std::make_shared<engine::RunObserver>();
  if (context.on_prepared) {
    context.on_prepared(prepared);
  }
  FLEUVE_ASSIGN(const engine::WriteResult written, context.engine->WriteFiles(prepared, spec, run));

  const std::string root = spec.folder + "/";
  const auto remove_all = [&] {
    for (const engine::WrittenFile& file : written.files) {
      table.store->Delete(root + file.relative_path).IgnoreBecause("VACUUM removes what is left");
    }
  };
  for (const engine::ObservedMetrics& metrics : run.observer->metrics()) {
    if (metrics.name != "fleuve.constraints") {
      continue;
    }
    for (std::size_t i = 0; i < metrics.row.size() && i < constraints.size(); ++i) {
      if (!metrics.row[i].is_null() && metrics.row[i].integer() > 0) {
        remove_all();
        return constraints[i].error;
      }
    }
  }

  const std::string* vectors = delta::FindIn(metadata.configuration, "delta.enableDeletionVectors");
  const bool tight_bounds = vectors != nullptr && *vectors == "true";
  DataFiles out;
  std::set<std::string> folders;
  for (const engine::WrittenFile& file : written.files) {
    if (file.row_count == 0 && collects) {
      out.bytes += file.size_bytes;
      continue;
    }
    delta::AddFile add;
    const std::string relative =
        (options.subfolder.empty() ? std::string() : options.subfolder + "/") + file.relative_path;
    add.path = delta::EncodeUriPath(relative);
    for (std::size_t i = 0; i < metadata.partition_columns.size(); ++i) {
      const auto at = types::FieldIndex(schema, metadata.partition_columns[i]);
      const StructField& field = schema.fields()[*at];
      FLEUVE_ASSIGN(auto text, delta::FormatPartitionValue(file.partition_values[i], field.type));
      add.partition_values.emplace_back(delta::PhysicalName(field, metadata), std::move(text));
    }
    add.size = file.size_bytes;
    add.data_change = options.data_change;
    const std::string path = table.path + "/" + relative;
    FLEUVE_ASSIGN(const auto meta, table.store->Head(path));
    add.modification_time = meta.modified_ms;
    if (collects || (options.statistics && needs_count)) {
      std::map<std::vector<std::string>, const engine::ColumnStatistics*> by_path;
      for (const engine::ColumnStatistics& s : file.statistics) {
        by_path[s.path] = &s;
      }
      std::vector<LeafStatistics> values(leaves.size());
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (const auto at = by_path.find(leaves[i].path); at != by_path.end()) {
          values[i] = {at->second->min, at->second->max, at->second->null_count};
        }
      }
      add.stats = StatisticsText(leaves, file.row_count, values, tight_bounds);
    }
    out.files.push_back(path);
    std::string folder = path.substr(0, path.rfind('/'));
    while (folder.size() >= table.path.size() && folders.insert(folder).second) {
      if (folder.size() == table.path.size()) {
        break;
      }
      folder = folder.substr(0, folder.rfind('/'));
    }
    out.bytes += file.size_bytes;
    out.adds.push_back(std::move(add));
  }
  out.folders.assign(folders.begin(), folders.end());
  out.row_count = written.row_count;
  out.written_files = static_cast<std::int64_t>(written.files.size());
  return out;
}

}  // namespace fleuve::tables
