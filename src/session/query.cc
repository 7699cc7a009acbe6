#include <algorithm>

#include "columnar/ipc.h"
#include "plan/analyzer.h"
#include "plan/call_function.h"
#include "plan/coercion.h"
#include "plan/proto_types.h"
#include "session/executor_internal.h"
#include "session/plan_text_internal.h"
#include "session/pretty_text_internal.h"
#include "types/parts.h"

namespace fleuve::session {

namespace sc = spark::connect;
using types::DataType;
using types::StructField;
using types::TypeKind;
using types::Value;

namespace {

/// The version of Spark whose behaviour is served.
constexpr const char* kSparkVersion = "4.1.1";

Error StreamingNeedsWriter() {
  return Error(
      ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3102",
      "Queries with streaming sources must be executed with writeStream.start(), or from a streaming table or flow "
      "definition within a Spark Declarative Pipeline.;");
}

std::vector<plan::Attribute> VisibleOutput(const plan::LogicalPlan& plan) {
  std::vector<plan::Attribute> visible;
  for (const plan::Attribute& attribute : plan.output) {
    if (!attribute.hidden) {
      visible.push_back(attribute);
    }
  }
  return visible;
}

plan::PlanPtr LimitTo(const plan::PlanPtr& input, std::int64_t rows) {
  auto limit = std::make_shared<plan::LogicalPlan>();
  limit->kind = plan::PlanKind::kLimit;
  limit->children = {input};
  limit->output = input->output;
  limit->is_streaming = input->is_streaming;
  limit->count = rows;
  return limit;
}

}  // namespace

Executor::Executor(SessionState& state, OperationPtr operation)
    : state_(state),
      operation_(std::move(operation)),
      token_(operation_ == nullptr ? std::make_shared<CancellationToken>() : operation_->token) {}

Result<plan::PlanPtr> Executor::AnalyzeWith(SessionResolver& resolver, const sc::Relation& relation) {
  resolver.set_token(token_);
  return plan::Analyze(relation, resolver);
}

Result<plan::PlanPtr> Executor::AnalyzeRelation(const sc::Relation& relation) {
  SessionResolver resolver(state_);
  return AnalyzeWith(resolver, relation);
}

Result<plan::PlanPtr> Executor::AnalyzeQuery(const sc::Relation& relation) {
  SessionResolver resolver(state_);
  FLEUVE_ASSIGN(plan::PlanPtr plan, AnalyzeWith(resolver, relation));
  // Only now, as nobody knows before what a plan does while it is analyzed.
  operation_->repeatable = !resolver.has_effects();
  return plan;
}

Result<Completion> Executor::Run(const sc::Plan& plan) {
  switch (plan.op_type_case()) {
    case sc::Plan::kRoot:
      FLEUVE_TRY(RunRelation(plan.root()));
      return Completion::kNow;
    case sc::Plan::kCommand:
      return RunCommand(plan.command());
    default:
      return Error(ErrorKind::kUnsupported, "", "OPTYPE_NOT_SET not supported.")
          .Family(ErrorFamily::kUnsupportedOperation);
  }
}

Result<void> Executor::RunRelation(const sc::Relation& relation) {
  switch (relation.rel_type_case()) {
    case sc::Relation::kShowString: {
      const auto& show = relation.show_string();
      FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeQuery(show.input()));
      FLEUVE_ASSIGN(const RowsResult rows, ShowRows(plan, show.num_rows(), show.truncate(), show.vertical(), false));
      return PutRows(rows);
    }
    case sc::Relation::kHtmlString: {
      const auto& show = relation.html_string();
      FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeQuery(show.input()));
      FLEUVE_ASSIGN(const RowsResult rows, ShowRows(plan, show.num_rows(), show.truncate(), false, true));
      return PutRows(rows);
    }
    case sc::Relation::kCatalog: {
      // May change the catalog.
      FLEUVE_ASSIGN(const RowsResult rows, RunCatalog(relation.catalog()));
      return PutRows(rows);
    }
    default:
      break;
  }
  FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeQuery(relation));
  if (plan->is_streaming) {
    return StreamingNeedsWriter();
  }
  return StreamPlan(plan);
}

Result<void> Executor::StreamPlan(const plan::PlanPtr& plan) {
  ResultSink& sink = *operation_->sink;
  const types::Schema schema = plan::SchemaOf(*plan);
  FLEUVE_TRY(sink.PutSchema(schema));
  FLEUVE_ASSIGN(const auto engine, state_.Engine());
  const plan::AnalysisConfig config = state_.AnalysisSettings();
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(plan, config));
  engine::ExecuteOptions options;
  options.token = token_;
  options.observer = std::make_shared<engine::RunObserver>();
  if (const std::int64_t rows = state_.config().GetInt("spark.sql.execution.arrow.maxRecordsPerBatch", 10000);
      rows > 0) {
    options.batch_rows = rows;
  }
  FLEUVE_ASSIGN(auto reader, engine->Execute(prepared, options));
  bool any = false;
  const auto shared_schema = std::make_shared<const types::Schema>(schema);
  while (true) {
    FLEUVE_ASSIGN(auto batch, reader->Next());
    if (!batch) {
      break;
    }
    any = true;
    batch->schema = shared_schema;
    FLEUVE_TRY(sink.PutBatch(*batch));
  }
  reader.reset();
  if (!any) {
    // Clients need a batch even where there is no row.
    FLEUVE_ASSIGN(auto empty, columnar::BatchFromRows(schema, {}));
    FLEUVE_TRY(sink.PutBatch(empty));
  }
  for (const engine::ObservedMetrics& metrics : options.observer->metrics()) {
    sc::ExecutePlanResponse message;
    auto* observed = message.add_observed_metrics();
    observed->set_name(metrics.name);
    for (std::size_t i = 0; i < metrics.row.size(); ++i) {
      observed->add_keys(metrics.schema.fields()[i].name);
      FLEUVE_TRY(plan::LiteralToProto(metrics.row[i], metrics.schema.fields()[i].type, observed->add_values()));
    }
    FLEUVE_TRY(sink.PutMessage(std::move(message)));
  }
  return {};
}

Result<void> Executor::PutRows(const RowsResult& rows) {
  FLEUVE_TRY(operation_->sink->PutSchema(rows.schema));
  FLEUVE_ASSIGN(const auto batch, columnar::BatchFromRows(rows.schema, rows.rows));
  return operation_->sink->PutBatch(batch);
}

Result<Collected> Executor::Collect(const plan::PlanPtr& plan) {
  if (plan->is_streaming) {
    return StreamingNeedsWriter();
  }
  Collected collected;
  collected.schema = plan::SchemaOf(*plan);
  FLEUVE_ASSIGN(const auto engine, state_.Engine());
  const plan::AnalysisConfig config = state_.AnalysisSettings();
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(plan, config));
  engine::ExecuteOptions options;
  options.token = token_;
  FLEUVE_ASSIGN(auto reader, engine->Execute(prepared, options));
  FLEUVE_ASSIGN(collected.batches, engine::ReadAll(*reader));
  const auto shared_schema = std::make_shared<const types::Schema>(collected.schema);
  for (columnar::RecordBatch& batch : collected.batches) {
    batch.schema = shared_schema;
  }
  return collected;
}

Result<std::vector<Value::List>> Executor::CollectRows(const plan::PlanPtr& plan) {
  FLEUVE_ASSIGN(const Collected collected, Collect(plan));
  std::vector<Value::List> rows;
  for (const columnar::RecordBatch& batch : collected.batches) {
    FLEUVE_ASSIGN(auto part, columnar::RowsFromBatch(batch));
    std::move(part.begin(), part.end(), std::back_inserter(rows));
  }
  return rows;
}

Result<Value> Executor::ValueOf(const plan::ExprPtr& expr) {
  auto one = std::make_shared<plan::LogicalPlan>();
  one->kind = plan::PlanKind::kOneRow;
  plan::Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = "value";
  attribute.type = expr->type;
  FLEUVE_ASSIGN(const auto rows, CollectRows(plan::MakeProject(one, {expr}, {attribute})));
  return rows.at(0).at(0);
}

namespace {

/// Columns that only a function can print become strings in the plan.
Result<plan::PlanPtr> PrintableColumns(const plan::PlanPtr& input, const plan::AnalysisConfig& config) {
  std::vector<plan::ExprPtr> exprs;
  std::vector<plan::Attribute> output;
  bool changed = false;
  for (const plan::Attribute& attribute : VisibleOutput(*input)) {
    plan::ExprPtr expr = plan::MakeAttribute(attribute);
    plan::Attribute out = attribute;
    if (types::Holds(attribute.type, TypeKind::kVariant)) {
      if (attribute.type.Is(TypeKind::kVariant)) {
        FLEUVE_ASSIGN(expr, plan::CallFunction("to_json", {expr}, config));
      } else {
        FLEUVE_ASSIGN(expr, plan::MakeCast(expr, DataType::String(), config));
      }
      out.id = plan::NewAttributeId();
      out.type = DataType::String();
      changed = true;
    }
    exprs.push_back(std::move(expr));
    output.push_back(std::move(out));
  }
  return changed ? plan::MakeProject(input, std::move(exprs), std::move(output)) : input;
}

}  // namespace

Result<RowsResult> Executor::ShowRows(const plan::PlanPtr& plan, std::int64_t num_rows, std::int64_t truncate,
                                      bool vertical, bool html) {
  if (plan->is_streaming) {
    return StreamingNeedsWriter();
  }
  const std::int64_t wanted = std::clamp<std::int64_t>(num_rows, 0, 2147483631);
  const plan::AnalysisConfig config = state_.AnalysisSettings();
  FLEUVE_ASSIGN(const plan::PlanPtr printable, PrintableColumns(LimitTo(plan, wanted + 1), config));
  FLEUVE_ASSIGN(const auto rows, CollectRows(printable));
  const types::Schema schema = plan::SchemaOf(*printable);
  std::vector<std::string> names;
  for (const StructField& field : schema.fields()) {
    names.push_back(field.name);
  }
  std::vector<std::vector<std::string>> cells;
  for (const Value::List& row : rows) {
    std::vector<std::string> texts;
    for (std::size_t c = 0; c < row.size(); ++c) {
      FLEUVE_ASSIGN(std::string text, PrettyValue(row[c], schema.fields()[c].type, config.session_zone));
      texts.push_back(std::move(text));
    }
    cells.push_back(std::move(texts));
  }
  RowsResult result;
  result.schema = DataType::Struct({{html ? "html_string" : "show_string", DataType::String(), false, {}}});
  result.rows = {{Value(html ? HtmlString(names, cells, wanted, truncate)
                             : ShowString(names, cells, wanted, truncate, vertical))}};
  return result;
}

Result<std::string> Executor::ShowText(const plan::PlanPtr& plan, std::int64_t rows, std::int64_t truncate,
                                       bool vertical) {
  FLEUVE_ASSIGN(const RowsResult result, ShowRows(plan, rows, truncate, vertical, false));
  return result.rows[0][0].text();
}

namespace {

const char* ExplainMode(sc::AnalyzePlanRequest::Explain::ExplainMode mode) {
  switch (mode) {
    case sc::AnalyzePlanRequest::Explain::EXPLAIN_MODE_EXTENDED:
      return "extended";
    case sc::AnalyzePlanRequest::Explain::EXPLAIN_MODE_CODEGEN:
      return "codegen";
    case sc::AnalyzePlanRequest::Explain::EXPLAIN_MODE_COST:
      return "cost";
    case sc::AnalyzePlanRequest::Explain::EXPLAIN_MODE_FORMATTED:
      return "formatted";
    default:
      return "simple";
  }
}

/// The schema of a relation that is not for the analyzer; nullopt for the others.
std::optional<types::Schema> FixedSchema(const sc::Relation& relation) {
  if (relation.has_show_string()) {
    return DataType::Struct({{"show_string", DataType::String(), false, {}}});
  }
  if (relation.has_html_string()) {
    return DataType::Struct({{"html_string", DataType::String(), false, {}}});
  }
  return std::nullopt;
}

Error NoRelation() {
  return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "The plan to analyze holds no relation.");
}

/// Java's String.hashCode, so that the hash fits into 32 bits the way clients expect.
std::int32_t TextHash(const std::string& text) {
  std::uint32_t hash = 0;
  for (const char c : text) {
    hash = hash * 31 + static_cast<unsigned char>(c);
  }
  return static_cast<std::int32_t>(hash);
}

}  // namespace

Result<void> Executor::Analyze(const sc::AnalyzePlanRequest& request, sc::AnalyzePlanResponse* response) {
  const auto analyzed = [&](const sc::Plan& plan) -> Result<plan::PlanPtr> {
    if (!plan.has_root()) {
      return NoRelation();
    }
    return AnalyzeRelation(plan.root());
  };
  const auto text_of = [&](const sc::Relation& relation) -> Result<std::string> {
    FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeRelation(relation));
    return PlanText(plan, true);
  };
  switch (request.analyze_case()) {
    case sc::AnalyzePlanRequest::kSchema: {
      const sc::Plan& plan = request.schema().plan();
      auto* out = response->mutable_schema()->mutable_schema();
      if (plan.has_root()) {
        if (const auto fixed = FixedSchema(plan.root()); fixed) {
          plan::TypeToProto(*fixed, out);
          return {};
        }
        if (plan.root().has_catalog()) {
          FLEUVE_ASSIGN(const RowsResult rows, RunCatalog(plan.root().catalog()));
          plan::TypeToProto(rows.schema, out);
          return {};
        }
      }
      FLEUVE_ASSIGN(const plan::PlanPtr typed, analyzed(plan));
      plan::TypeToProto(plan::SchemaOf(*typed), out);
      return {};
    }
    case sc::AnalyzePlanRequest::kExplain: {
      FLEUVE_ASSIGN(const plan::PlanPtr plan, analyzed(request.explain().plan()));
      plan::PlanPtr prepared;
      if (!plan->is_streaming) {
        FLEUVE_ASSIGN(prepared, plan::Prepare(plan, state_.AnalysisSettings()));
      }
      response->mutable_explain()->set_explain_string(
          ExplainText(plan, prepared, ExplainMode(request.explain().explain_mode())));
      return {};
    }
    case sc::AnalyzePlanRequest::kTreeString: {
      FLEUVE_ASSIGN(const plan::PlanPtr plan, analyzed(request.tree_string().plan()));
      response->mutable_tree_string()->set_tree_string(
          types::TreeString(plan::SchemaOf(*plan), request.tree_string().level()));
      return {};
    }
    case sc::AnalyzePlanRequest::kIsLocal: {
      FLEUVE_ASSIGN(const plan::PlanPtr plan, analyzed(request.is_local().plan()));
      response->mutable_is_local()->set_is_local(plan->kind == plan::PlanKind::kRows);
      return {};
    }
    case sc::AnalyzePlanRequest::kIsStreaming: {
      FLEUVE_ASSIGN(const plan::PlanPtr plan, analyzed(request.is_streaming().plan()));
      response->mutable_is_streaming()->set_is_streaming(plan->is_streaming);
      return {};
    }
    case sc::AnalyzePlanRequest::kInputFiles: {
      FLEUVE_ASSIGN(const plan::PlanPtr plan, analyzed(request.input_files().plan()));
      auto* out = response->mutable_input_files();
      if (plan->is_streaming) {
        return StreamingNeedsWriter();
      }
      std::set<std::string> files;
      std::optional<Error> failure;
      plan::VisitPlan(plan, [&](const plan::LogicalPlan& node) {
        std::shared_ptr<const plan::FileScan> scan = node.scan;
        if (node.kind == plan::PlanKind::kTable) {
          auto planned = node.table->PlanScan({}, node.output);
          if (!planned.ok()) {
            failure = planned.error();
            return;
          }
          scan = *planned;
        }
        if (scan != nullptr) {
          for (const plan::ScanFile& file : scan->files) {
            files.insert(file.uri);
          }
        }
      });
      if (failure) {
        return *failure;
      }
      for (const std::string& file : files) {
        out->add_files(file);
      }
      return {};
    }
    case sc::AnalyzePlanRequest::kSparkVersion:
      response->mutable_spark_version()->set_version(kSparkVersion);
      return {};
    case sc::AnalyzePlanRequest::kDdlParse: {
      FLEUVE_ASSIGN(const DataType type, sql::ParseSchema(request.ddl_parse().ddl_string()));
      plan::TypeToProto(type, response->mutable_ddl_parse()->mutable_parsed());
      return {};
    }
    case sc::AnalyzePlanRequest::kSameSemantics: {
      const auto& same = request.same_semantics();
      if (!same.target_plan().has_root() || !same.other_plan().has_root()) {
        return NoRelation();
      }
      FLEUVE_ASSIGN(const std::string target, text_of(same.target_plan().root()));
      FLEUVE_ASSIGN(const std::string other, text_of(same.other_plan().root()));
      response->mutable_same_semantics()->set_result(target == other);
      return {};
    }
    case sc::AnalyzePlanRequest::kSemanticHash: {
      if (!request.semantic_hash().plan().has_root()) {
        return NoRelation();
      }
      FLEUVE_ASSIGN(const std::string text, text_of(request.semantic_hash().plan().root()));
      response->mutable_semantic_hash()->set_result(TextHash(text));
      return {};
    }
    case sc::AnalyzePlanRequest::kPersist: {
      FLEUVE_ASSIGN(const std::string text, text_of(request.persist().relation()));
      StorageLevel level{true, true, false, true, 1};
      if (request.persist().has_storage_level()) {
        const auto& wanted = request.persist().storage_level();
        level = StorageLevel{wanted.use_disk(), wanted.use_memory(), wanted.use_off_heap(), wanted.deserialized(),
                             wanted.replication()};
      }
      state_.Persist(text, level);
      state_.Persist("", level);  // the empty text: some relation is, or was, persisted
      response->mutable_persist();
      return {};
    }
    case sc::AnalyzePlanRequest::kUnpersist: {
      FLEUVE_ASSIGN(const std::string text, text_of(request.unpersist().relation()));
      state_.Unpersist(text);
      response->mutable_unpersist();
      return {};
    }
    case sc::AnalyzePlanRequest::kGetStorageLevel: {
      FLEUVE_ASSIGN(const std::string text, text_of(request.get_storage_level().relation()));
      const StorageLevel level = state_.Persisted(text).value_or(StorageLevel{});
      auto* out = response->mutable_get_storage_level()->mutable_storage_level();
      out->set_use_disk(level.use_disk);
      out->set_use_memory(level.use_memory);
      out->set_use_off_heap(level.use_off_heap);
      out->set_deserialized(level.deserialized);
      out->set_replication(level.replication);
      return {};
    }
    case sc::AnalyzePlanRequest::kJsonToDdl: {
      FLEUVE_ASSIGN(const Json json, Json::Parse(request.json_to_ddl().json_string()));
      FLEUVE_ASSIGN(const DataType type, DataType::FromJson(json));
      response->mutable_json_to_ddl()->set_ddl_string(types::ToDdl(type));
      return {};
    }
    case sc::AnalyzePlanRequest::ANALYZE_NOT_SET:
      break;
  }
  return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "Unknown Analyze Method ANALYZE_NOT_SET!")
      .With("message", "Unknown Analyze Method ANALYZE_NOT_SET!");
}

}  // namespace fleuve::session
