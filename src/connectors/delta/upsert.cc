#include <algorithm>

#include "base/bytes.h"
#include "base/log.h"
#include "connectors/delta/upsert_internal.h"
#include "connectors/run_batch.h"
#include "delta/table_source.h"
#include "engine/engine.h"
#include "plan/analyzer.h"
#include "plan/call_function.h"
#include "tables/modify.h"

namespace fleuve::connectors::delta {

namespace dl = ::fleuve::delta;

namespace {

using plan::ExprPtr;
using plan::PlanPtr;
using types::DataType;
using types::Value;

/// Times a merge is computed anew before the conflict is reported.
constexpr int kAttempts = 50;

Error BadOptions(std::string message) {
  return Error(ErrorKind::kInvalidArgument, "FLEUVE_UPSERT_OPTIONS", std::move(message));
}

Result<const plan::Attribute*> Find(const PlanPtr& plan, const std::string& name, const plan::AnalysisConfig& config,
                                    const char* where) {
  std::vector<std::string> known;
  for (const plan::Attribute& attribute : plan->output) {
    if (attribute.hidden) {
      continue;
    }
    if (config.case_sensitive ? attribute.name == name : EqualsIgnoreAsciiCase(attribute.name, name)) {
      return &attribute;
    }
    known.push_back("`" + attribute.name + "`");
  }
  return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITH_SUGGESTION",
               "A column, variable, or function parameter with name `" + name +
                   "` cannot be resolved: it is named by the option " + where + ", the columns are [" +
                   Join(known, ", ") + "].")
      .With("objectName", "`" + name + "`")
      .With("proposal", Join(known, ", "));
}

/// True where the plan gives a row.
Result<bool> HasRows(const PlanPtr& plan, const SinkBatch& batch) {
  FLEUVE_ASSIGN(const PlanPtr prepared, plan::Prepare(plan, batch.config));
  engine::ExecuteOptions options;
  options.token = batch.token;  // no observer: these rows are no input of the batch
  FLEUVE_ASSIGN(const auto reader, batch.engine->Execute(prepared, options));
  FLEUVE_ASSIGN(const auto batches, engine::ReadAll(*reader));
  return std::any_of(batches.begin(), batches.end(), [](const auto& one) { return one.row_count() > 0; });
}

PlanPtr GroupBy(const PlanPtr& child, const std::vector<const plan::Attribute*>& keys, const ExprPtr& aggregate) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kAggregate;
  node->children = {child};
  for (const plan::Attribute* key : keys) {
    node->grouping.push_back(plan::MakeAttribute(*key));
    plan::Attribute attribute = *key;
    attribute.id = plan::NewAttributeId();
    node->output.push_back(std::move(attribute));
  }
  node->aggregates = {aggregate};
  plan::Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = "value";
  attribute.type = aggregate->type;
  node->output.push_back(std::move(attribute));
  return node;
}

bool IsConflict(const Error& error) {
  return error.kind() == ErrorKind::kConflict &&
         (error.condition().starts_with("DELTA_CONCURRENT") || error.condition() == "DELTA_METADATA_CHANGED" ||
          error.condition() == "DELTA_PROTOCOL_CHANGED");
}

}  // namespace

Result<std::optional<UpsertOptions>> ParseUpsertOptions(const plan::Options& options, const std::string& output_mode) {
  const std::string* keys = plan::FindOption(options, "upsertKeys");
  const std::string* sequence = plan::FindOption(options, "sequenceBy");
  if (keys == nullptr) {
    if (sequence != nullptr) {
      return BadOptions("The option sequenceBy needs the option upsertKeys.");
    }
    return std::optional<UpsertOptions>();
  }
  UpsertOptions parsed;
  for (const std::string& part : Split(*keys, ',')) {
    const std::string name(TrimAscii(part));
    if (name.empty()) {
      return BadOptions("The option upsertKeys is '" + *keys + "': it must be a list of columns such as 'id, day'.");
    }
    parsed.keys.push_back(name);
  }
  if (sequence != nullptr) {
    parsed.sequence_by = std::string(TrimAscii(*sequence));
    if (parsed.sequence_by.empty()) {
      return BadOptions("The option sequenceBy is empty: it must name a column.");
    }
  }
  if (output_mode == "complete") {
    return BadOptions("The option upsertKeys works in the output modes append and update, not complete.");
  }
  return std::optional<UpsertOptions>(std::move(parsed));
}

Result<PlanPtr> ReduceToKeys(const UpsertOptions& options, const SinkBatch& batch) {
  auto held = std::make_shared<plan::RowScan>();
  FLEUVE_ASSIGN(const auto reader, RunBatch(batch, batch.plan));
  FLEUVE_ASSIGN(held->batches, engine::ReadAll(*reader));
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kRows;
  leaf->output = plan::AttributesOf(plan::SchemaOf(*batch.plan));
  leaf->rows = std::move(held);
  const PlanPtr rows = leaf;
  std::vector<const plan::Attribute*> keys;
  ExprPtr null_key;
  for (const std::string& name : options.keys) {
    FLEUVE_ASSIGN(const plan::Attribute* key, Find(rows, name, batch.config, "upsertKeys"));
    keys.push_back(key);
    ExprPtr is_null = plan::MakeCall("isnull", {plan::MakeAttribute(*key)}, DataType::Boolean(), false);
    null_key = null_key ? plan::MakeCall("or", {null_key, is_null}, DataType::Boolean(), false) : std::move(is_null);
  }
  // One run looks for both kinds of NULL; a second one tells them apart only where there is one.
  const bool in_sequence = !options.sequence_by.empty();
  const auto sequence = in_sequence ? Find(rows, options.sequence_by, batch.config, "sequenceBy")
                                    : Result<const plan::Attribute*>(nullptr);
  ExprPtr null = null_key;
  if (in_sequence && sequence.ok()) {
    null = plan::MakeCall(
        "or", {null, plan::MakeCall("isnull", {plan::MakeAttribute(**sequence)}, DataType::Boolean(), false)},
        DataType::Boolean(), false);
  }
  FLEUVE_ASSIGN(const bool has_null, HasRows(plan::MakeFilter(rows, null), batch));
  bool has_null_key = has_null;
  if (has_null && null != null_key) {
    FLEUVE_ASSIGN(has_null_key, HasRows(plan::MakeFilter(rows, null_key), batch));
  }
  if (has_null_key) {
    return Error(ErrorKind::kInvalidArgument, "FLEUVE_UPSERT_NULL_KEY",
                 "A row of the batch has NULL in a column of upsertKeys (" + Join(options.keys, ", ") +
                     "): it names no row of the table. Filter such rows out before the sink.");
  }
  if (!in_sequence) {
    FLEUVE_ASSIGN(
        const ExprPtr count,
        plan::CallFunction("count", {plan::MakeLiteral(Value(std::int64_t{1}), DataType::Long())}, batch.config));
    const PlanPtr counted = GroupBy(rows, keys, count);
    const ExprPtr twice = plan::MakeCall(
        "gt",
        {plan::MakeAttribute(counted->output.back()), plan::MakeLiteral(Value(std::int64_t{1}), DataType::Long())},
        DataType::Boolean(), false);
    FLEUVE_ASSIGN(const bool has_twice, HasRows(plan::MakeFilter(counted, twice), batch));
    if (has_twice) {
      return Error(ErrorKind::kInvalidArgument, "FLEUVE_UPSERT_SEQUENCE_REQUIRED",
                   "The batch holds several rows of one key (" + Join(options.keys, ", ") +
                       "): name the column that tells which is the newest with the option sequenceBy.");
    }
    return rows;
  }
  if (!sequence.ok()) {
    return sequence.error();
  }
  if (has_null) {
    return Error(ErrorKind::kInvalidArgument, "FLEUVE_UPSERT_NULL_SEQUENCE",
                 "A row of the batch has NULL in the column of sequenceBy (" + options.sequence_by +
                     "): its place among the rows of its key is unknown.");
  }
  std::vector<ExprPtr> members;
  for (const plan::Attribute& attribute : rows->output) {
    members.push_back(plan::MakeLiteral(Value(attribute.name), DataType::String()));
    members.push_back(plan::MakeAttribute(attribute));
  }
  FLEUVE_ASSIGN(const ExprPtr whole, plan::CallFunction("named_struct", std::move(members), batch.config));
  FLEUVE_ASSIGN(const ExprPtr newest,
                plan::CallFunction("max_by", {whole, plan::MakeAttribute(**sequence)}, batch.config));
  if (newest->kind != plan::ExprKind::kAggregate) {
    return Error::Internal("max_by is no plain aggregate");
  }
  const PlanPtr grouped = GroupBy(rows, keys, newest);
  std::vector<ExprPtr> exprs;
  std::vector<plan::Attribute> output;
  for (std::size_t i = 0; i < rows->output.size(); ++i) {
    exprs.push_back(plan::MakeGetField(plan::MakeAttribute(grouped->output.back()), static_cast<int>(i)));
    plan::Attribute attribute = rows->output[i];
    attribute.id = plan::NewAttributeId();
    output.push_back(std::move(attribute));
  }
  return plan::MakeProject(grouped, std::move(exprs), std::move(output));
}

Result<bool> MergeByKeys(const UpsertOptions& options, const PlanPtr& rows, const tables::TableContext& context,
                         const tables::TableRef& table, const std::string& query_id, std::int64_t batch_id,
                         bool merge_schema) {
  tables::TableContext own = context;
  own.observer = nullptr;
  own.on_prepared = nullptr;
  // The transaction of the batch goes into the merge's own commit.
  own.config.conf = [below = context.config.conf, query_id, batch_id](const std::string& key) {
    if (key == "spark.databricks.delta.write.txnAppId") {
      return std::optional<std::string>(query_id);
    }
    if (key == "spark.databricks.delta.write.txnVersion") {
      return std::optional<std::string>(std::to_string(batch_id));
    }
    return below ? below(key) : std::nullopt;
  };
  const dl::DeltaLogPtr log = context.logs->Open(table.location);
  for (int attempt = 1;; ++attempt) {
    FLEUVE_ASSIGN(const dl::SnapshotPtr snapshot, log->Latest());
    if (const auto held = snapshot->Transaction(query_id); held && held->version >= batch_id) {
      return false;
    }
    auto target = std::make_shared<plan::LogicalPlan>();
    target->kind = plan::PlanKind::kTable;
    target->table = std::make_shared<dl::DeltaTable>(snapshot, table.name);
    target->output = plan::AttributesOf(target->table->schema());
    tables::MergeSpec spec;
    spec.target = target;
    spec.source = rows;
    spec.schema_evolution = merge_schema;
    for (const std::string& name : options.keys) {
      FLEUVE_ASSIGN(const plan::Attribute* of_table, Find(spec.target, name, own.config, "upsertKeys"));
      FLEUVE_ASSIGN(const plan::Attribute* of_rows, Find(rows, name, own.config, "upsertKeys"));
      FLEUVE_ASSIGN(
          ExprPtr same,
          plan::CallFunction("==", {plan::MakeAttribute(*of_table), plan::MakeAttribute(*of_rows)}, own.config));
      spec.condition = spec.condition ? plan::MakeAnd(spec.condition, std::move(same)) : std::move(same);
    }
    tables::MergeClause update;
    update.star = true;
    if (!options.sequence_by.empty()) {
      // A row that comes late does not replace a newer one.
      FLEUVE_ASSIGN(const plan::Attribute* of_table, Find(spec.target, options.sequence_by, own.config, "sequenceBy"));
      FLEUVE_ASSIGN(const plan::Attribute* of_rows, Find(rows, options.sequence_by, own.config, "sequenceBy"));
      FLEUVE_ASSIGN(
          const ExprPtr newer,
          plan::CallFunction(">=", {plan::MakeAttribute(*of_rows), plan::MakeAttribute(*of_table)}, own.config));
      update.condition = plan::MakeCall(
          "or", {plan::MakeCall("isnull", {plan::MakeAttribute(*of_table)}, DataType::Boolean(), false), newer},
          DataType::Boolean(), true);
    }
    tables::MergeClause insert;
    insert.kind = tables::MergeClause::Kind::kInsert;
    insert.star = true;
    spec.matched = {update};
    spec.not_matched = {insert};
    auto merged = tables::MergeInto(own, table, spec);
    if (merged.ok()) {
      return true;
    }
    if (!IsConflict(merged.error()) || attempt >= kAttempts) {
      return std::move(merged).error();
    }
    LogInfo("the upsert of batch " + std::to_string(batch_id) + " into " + table.name +
            " is computed anew: " + merged.error().message());
    if (context.token) {
      FLEUVE_TRY(context.token->Check());
    }
  }
}

}  // namespace fleuve::connectors::delta
