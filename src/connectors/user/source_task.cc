#include <limits>

#include "base/bytes.h"
#include "columnar/ipc.h"
#include "connectors/user/source_task_internal.h"
#include "python/external_runtime.h"
#include "sql/parser.h"

namespace fleuve::connectors::user {

namespace {

/// mapInArrow: record batches in, record batches out.
constexpr int kMapArrow = 207;

bool IsRaised(const Error& error) { return error.condition() == "PYTHON_EXCEPTION"; }

/// A struct type or a list of columns; the error is that of a type, as Spark tries it first.
Result<types::Schema> SchemaOfText(const std::string& text) {
  if (TrimAscii(text).empty()) {
    return Error(ErrorKind::kInvalidArgument, "PARSE_EMPTY_STATEMENT", "Syntax error, unexpected empty statement.");
  }
  auto type = sql::ParseDataType(text, {});
  if (type.ok() && !type->Is(types::TypeKind::kStruct)) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_SCHEMA.NON_STRUCT_TYPE",
                 "The input schema \"" + text +
                     "\" is not a valid schema string. The input expression must be evaluated to struct type, but got "
                     "\"" +
                     type->Sql() + "\".")
        .With("inputSchema", "\"" + text + "\"")
        .With("dataType", "\"" + type->Sql() + "\"");
  }
  if (type.ok()) {
    return type;
  }
  auto columns = sql::ParseColumnList(text, {});
  return columns.ok() ? std::move(columns) : std::move(type);
}

}  // namespace

Error SourceError(Error error, const std::string& action, const std::string& type) {
  if (!IsRaised(error)) {
    return error;
  }
  const std::string text = error.message();
  return Error(ErrorKind::kInvalidArgument, "PYTHON_DATA_SOURCE_ERROR",
               "Failed to " + action + " Python data source " + type + ": " + text)
      .With("action", action)
      .With("type", type)
      .With("msg", text);
}

Error StreamError(Error error, const std::string& action) {
  if (!IsRaised(error)) {
    return error;
  }
  const std::string text = error.message();
  return Error(ErrorKind::kInvalidArgument, "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR",
               "Failed when Python streaming data source perform " + action + ": " + text)
      .With("action", action)
      .With("msg", text);
}

Json OptionsJson(const plan::Options& options) {
  Json::Array pairs;
  for (const auto& [key, value] : options) {
    pairs.emplace_back(Json::Array{Json(key), Json(value)});
  }
  return pairs;
}

std::int64_t MostRows(const plan::AnalysisConfig& config) {
  const auto text = config.conf ? config.conf("spark.sql.execution.arrow.maxRecordsPerBatch") : std::nullopt;
  const std::int64_t rows = text ? std::atoll(text->c_str()) : 10000;
  return rows > 0 ? rows : std::numeric_limits<std::int32_t>::max();
}

Result<TaskResult> RunTask(const SourceClass& source, const python::Task& task) {
  FLEUVE_ASSIGN(python::BorrowedWorker worker, source.workers->Borrow(source.setup));
  FLEUVE_TRY(worker->Begin(task, nullptr));
  TaskResult result;
  while (true) {
    FLEUVE_ASSIGN(python::Event event, worker->Next());
    switch (event.kind) {
      case python::EventKind::kDone:
        result.result = std::move(event.message);
        return result;
      case python::EventKind::kOutput:
        result.outputs.push_back(std::move(event.bytes));
        continue;
      case python::EventKind::kNeedInput:
      case python::EventKind::kMessage:
        return Error::Internal("a data source asks the server for something while it is planned");
    }
  }
}

Result<MadeSource> MakeSource(const SourceClass& source, const std::optional<types::Schema>& schema,
                              const plan::Options& options) {
  python::Task task;
  task.kind = "data_source";
  task.header.Set("action", "create")
      .Set("python_version", source.python_version)
      .Set("provider", source.name)
      .Set("options", OptionsJson(options))
      .Set("schema", schema ? schema->ToJson() : Json());
  task.blobs = {source.command};
  task.limits = source.limits;
  auto ran = RunTask(source, task);
  if (!ran.ok()) {
    return SourceError(std::move(ran).error(), "create", "instance");
  }
  MadeSource made;
  made.source = source;
  if (ran->outputs.empty()) {
    return Error::Internal("a data source was made and is not there");
  }
  made.instance = std::move(ran->outputs[0]);
  if (const Json* ddl = ran->result.Find("ddl"); ddl != nullptr) {
    FLEUVE_ASSIGN(made.schema, SchemaOfText(ddl->AsString()));
  } else {
    FLEUVE_ASSIGN(made.schema, types::DataType::FromJson(ran->result["schema"]));
  }
  return made;
}

Result<plan::PlanPtr> ReadPlan(const MadeSource& made, const std::string& function, const std::string& partitions,
                               const std::vector<plan::Attribute>& output, const plan::AnalysisConfig& config) {
  FLEUVE_ASSIGN(columnar::IpcContent content, columnar::DecodeIpcStream(partitions));
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kRows;
  leaf->output = plan::AttributesOf(content.schema);
  auto rows = std::make_shared<plan::RowScan>();
  rows->batches = std::move(content.batches);
  leaf->rows = std::move(rows);

  auto context = std::make_shared<plan::ExternalContext>();
  python::RuntimeSetup setup;
  setup.worker = made.source.setup;
  setup.limits = made.source.limits;
  context->runtime = python::MakeExternalRuntime(made.source.workers, std::move(setup));
  context->session_zone = config.session_zone;
  for (const char* key :
       {"spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.pyspark.binaryAsBytes"}) {
    if (auto value = config.conf ? config.conf(key) : std::nullopt) {
      context->settings.emplace(key, *std::move(value));
    }
  }
  auto reader = std::make_shared<plan::ExternalFunction>();
  reader->name = "read_from_data_source";
  reader->eval_type = kMapArrow;
  reader->command = function;
  reader->python_version = made.source.python_version;
  reader->type = made.schema;
  reader->context = context;

  auto op = std::make_shared<plan::ExternalOperator>();
  op->kind = plan::ExternalKind::kMap;
  op->context = std::move(context);
  plan::ExternalCall call;
  call.chain.push_back(std::move(reader));
  call.arguments = {0};
  op->calls.push_back(std::move(call));

  auto read = std::make_shared<plan::LogicalPlan>();
  read->kind = plan::PlanKind::kExternal;
  read->exprs.push_back(plan::MakeAttribute(leaf->output.front()));
  read->external = std::move(op);
  read->output = output;
  read->children.push_back(std::move(leaf));
  return plan::PlanPtr(std::move(read));
}

Result<std::vector<SourceClass>> FindInstalled(const SourceClass& place) {
  python::Task task;
  task.kind = "data_source";
  task.header.Set("action", "find");
  task.limits = place.limits;
  FLEUVE_ASSIGN(TaskResult found, RunTask(place, task));
  std::vector<SourceClass> classes;
  for (std::size_t i = 0; i < found.outputs.size() && i < found.result["names"].items().size(); ++i) {
    SourceClass each = place;
    each.name = found.result["names"].items()[i].AsString();
    each.command = std::move(found.outputs[i]);
    each.python_version.clear();
    classes.push_back(std::move(each));
  }
  return classes;
}

}  // namespace fleuve::connectors::user
