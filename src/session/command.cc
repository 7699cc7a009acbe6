#include "base/bytes.h"
#include "base/ids.h"
#include "columnar/ipc.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "session/executor_internal.h"
#include "session/pipelines.h"

namespace fleuve::session {

namespace sc = spark::connect;

namespace {

Error UnsupportedCommand(const std::string& name) { return Error::Unsupported("the command " + name); }

/// The SQL relation inside a sql_command's input, with the frames that stand beside it.
struct SqlInput {
  const sc::SQL* sql = nullptr;
  const google::protobuf::RepeatedPtrField<sc::Relation>* references = nullptr;
};

SqlInput FindSql(const sc::Relation& relation) {
  if (relation.has_sql()) {
    return {&relation.sql(), nullptr};
  }
  if (relation.has_with_relations() && relation.with_relations().root().has_sql()) {
    return {&relation.with_relations().root().sql(), &relation.with_relations().references()};
  }
  return {};
}

/// The commands that a definition of a pipeline may give: they tell about what is there.
bool OnlyLooks(const pb::Command& command) {
  switch (command.kind_case()) {
    case pb::Command::kDescribeTable:
    case pb::Command::kDescribeQuery:
    case pb::Command::kDescribeDatabase:
    case pb::Command::kDescribeFunction:
    case pb::Command::kDescribeDetail:
    case pb::Command::kDescribeHistory:
    case pb::Command::kShow:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<Completion> Executor::RunCommand(const sc::Command& command) {
  switch (command.command_type_case()) {
    case sc::Command::kSqlCommand:
      FLEUVE_TRY(RunSqlCommand(command.sql_command()));
      return Completion::kNow;
    case sc::Command::kCreateDataframeView:
      FLEUVE_TRY(CreateView(command.create_dataframe_view()));
      return Completion::kNow;
    case sc::Command::kWriteOperation:
      FLEUVE_TRY(Write(command.write_operation()));
      return Completion::kNow;
    case sc::Command::kWriteOperationV2:
      FLEUVE_TRY(WriteV2(command.write_operation_v2()));
      return Completion::kNow;
    case sc::Command::kWriteStreamOperationStart:
      FLEUVE_TRY(StartStream(command.write_stream_operation_start()));
      return Completion::kNow;
    case sc::Command::kStreamingQueryCommand:
      FLEUVE_TRY(QueryCommand(command.streaming_query_command()));
      return Completion::kNow;
    case sc::Command::kStreamingQueryManagerCommand:
      FLEUVE_TRY(ManagerCommand(command.streaming_query_manager_command()));
      return Completion::kNow;
    case sc::Command::kStreamingQueryListenerBusCommand:
      return BusCommand(command.streaming_query_listener_bus_command());
    case sc::Command::kGetResourcesCommand: {
      sc::ExecutePlanResponse message;
      message.mutable_get_resources_command_result();
      FLEUVE_TRY(operation_->sink->PutMessage(std::move(message)));
      return Completion::kNow;
    }
    case sc::Command::kCheckpointCommand:
      FLEUVE_TRY(Checkpoint(command.checkpoint_command()));
      return Completion::kNow;
    case sc::Command::kRemoveCachedRemoteRelationCommand:
      state_.DropRelation(command.remove_cached_remote_relation_command().relation().relation_id());
      return Completion::kNow;
    case sc::Command::kMergeIntoTableCommand:
      FLEUVE_TRY(MergeCommand(command.merge_into_table_command()));
      return Completion::kNow;
    case sc::Command::kRegisterFunction:
      FLEUVE_TRY(RegisterFunction(command.register_function()));
      return Completion::kNow;
    case sc::Command::kRegisterTableFunction:
      FLEUVE_TRY(RegisterTableFunction(command.register_table_function()));
      return Completion::kNow;
    case sc::Command::kRegisterDataSource:
      FLEUVE_TRY(RegisterDataSource(command.register_data_source()));
      return Completion::kNow;
    case sc::Command::kCreateResourceProfileCommand:
      return UnsupportedCommand("create_resource_profile_command");
    case sc::Command::kMlCommand:
      return UnsupportedCommand("ml_command");
    case sc::Command::kExecuteExternalCommand:
      return UnsupportedCommand("execute_external_command");
    case sc::Command::kPipelineCommand:
      if (state_.services().pipelines == nullptr) {
        return UnsupportedCommand("pipeline_command");
      }
      FLEUVE_TRY(state_.services().pipelines->Run(state_.session(), command.pipeline_command(), operation_));
      return Completion::kNow;
    case sc::Command::kExtension: {
      FLEUVE_ASSIGN(const bool known, DeltaCommand(command.extension()));
      if (known) {
        return Completion::kNow;
      }
      return Error::Unsupported("the command extension " + command.extension().type_url());
    }
    case sc::Command::COMMAND_TYPE_NOT_SET:
      break;
  }
  const std::string text = "This oneOf field in spark.connect.Command is not set: COMMANDTYPE_NOT_SET";
  return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", text).With("message", text);
}

Result<void> Executor::RunSqlCommand(const sc::SqlCommand& command) {
  sc::Relation built;
  const sc::Relation* input = &command.input();
  if (!command.has_input()) {
    // The form of older clients.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    auto* sql = built.mutable_sql();
    sql->set_query(command.sql());
    *sql->mutable_args() = command.args();
    *sql->mutable_pos_args() = command.pos_args();
    *sql->mutable_named_arguments() = command.named_arguments();
    *sql->mutable_pos_arguments() = command.pos_arguments();
#pragma GCC diagnostic pop
    input = &built;
  }
  const SqlInput found = FindSql(*input);
  if (found.sql == nullptr) {
    return Error::Unsupported("a sql_command whose input is no SQL text");
  }
  SessionResolver resolver(state_);
  FLEUVE_ASSIGN(const sql::Statement statement, resolver.ParseStatement(*found.sql));
  sc::ExecutePlanResponse message;
  auto* relation = message.mutable_sql_command_result()->mutable_relation();
  if (statement.command == nullptr) {
    *relation = *input;
    return operation_->sink->PutMessage(std::move(message));
  }
  if (!operation_->pipeline_graph.empty() && !OnlyLooks(*statement.command)) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_PIPELINE_SPARK_SQL_COMMAND",
                 "'" + statement.text + "' is not supported in spark.sql(\"...\") API in Spark Declarative Pipeline.")
        .With("command", statement.text);
  }
  if (found.references != nullptr) {
    for (const sc::Relation& reference : *found.references) {
      if (!reference.has_subquery_alias()) {
        return Error::Unsupported("a DataFrame argument without a name in a SQL command");
      }
      FLEUVE_ASSIGN(plan::PlanPtr plan, AnalyzeRelation(reference.subquery_alias().input()));
      resolver.AddLocalView(reference.subquery_alias().alias(), std::move(plan));
    }
  }
  FLEUVE_ASSIGN(const RowsResult rows, RunStatement(*statement.command, resolver));
  FLEUVE_ASSIGN(const auto batch, columnar::BatchFromRows(rows.schema, rows.rows));
  columnar::ArrowOptions options;
  options.time_zone = state_.config().GetOr("spark.sql.session.timeZone", "UTC");
  FLEUVE_ASSIGN(std::string data, columnar::EncodeIpcStream(rows.schema, {batch}, options));
  auto* local = relation->mutable_local_relation();
  local->set_data(std::move(data));
  // The Arrow form says less than the schema: nothing is lost when it travels beside.
  local->set_schema(rows.schema.ToJson().Dump());
  return operation_->sink->PutMessage(std::move(message));
}

Result<void> Executor::CreateView(const sc::CreateDataFrameViewCommand& command) {
  const auto parsed = sql::ParseMultipartName(command.name());
  if (!parsed.ok()) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1321", "Invalid view name: " + command.name() + ".")
        .Family(ErrorFamily::kAnalysis);
  }
  const std::vector<std::string>& parts = *parsed;
  if (parts.size() != 1 &&
      !(command.is_global() && parts.size() == 2 && EqualsIgnoreAsciiCase(parts[0], "global_temp"))) {
    return Error(
               ErrorKind::kInvalidArgument, "TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS",
               "CREATE TEMPORARY VIEW or the corresponding Dataset APIs only accept single-part view names, but got: " +
                   QuoteParts(parts) + ".")
        .With("actualName", QuoteParts(parts));
  }
  const std::string& name = parts.back();
  FLEUVE_ASSIGN(plan::PlanPtr plan, AnalyzeRelation(command.input()));
  const bool exists = (command.is_global() ? state_.FindGlobalView(name) : state_.FindView(name)) != nullptr;
  if (exists && !command.replace()) {
    const std::string shown = command.is_global() ? QuoteParts({"global_temp", name}) : QuoteParts({name});
    return Error(
               ErrorKind::kAlreadyExists, "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
               "Cannot create the temporary view " + shown +
                   " because it already exists. Choose a different name, drop or replace the existing view, or add the "
                   "IF NOT EXISTS clause to tolerate pre-existing views.")
        .With("relationName", shown);
  }
  if (command.is_global()) {
    state_.PutGlobalView(name, std::move(plan));
  } else {
    state_.PutView(name, std::move(plan));
  }
  return {};
}

Result<void> Executor::Checkpoint(const sc::CheckpointCommand& command) {
  FLEUVE_ASSIGN(plan::PlanPtr plan, AnalyzeRelation(command.relation()));
  if (command.has_storage_level() && command.storage_level().use_off_heap()) {
    return Error::Unsupported("checkpoints off the heap");
  }
  // The rows are computed now, once: what the name checkpoint promises. A lazy one may be computed early.
  FLEUVE_ASSIGN(Collected collected, Collect(plan));
  auto rows = std::make_shared<plan::RowScan>();
  rows->batches = std::move(collected.batches);
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kRows;
  leaf->rows = std::move(rows);
  for (const plan::Attribute& attribute : plan->output) {
    if (!attribute.hidden) {
      leaf->output.push_back(attribute);
    }
  }
  const std::string id = NewUuid();
  state_.PutRelation(id, std::move(leaf));
  sc::ExecutePlanResponse message;
  message.mutable_checkpoint_command_result()->mutable_relation()->set_relation_id(id);
  return operation_->sink->PutMessage(std::move(message));
}

}  // namespace fleuve::session
