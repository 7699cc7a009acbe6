#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/bytes.h"
#include "connectors/files/file_table.h"
#include "connectors/sink.h"
#include "session/data_sources_internal.h"
#include "session/executor_internal.h"
#include "session/foreach_internal.h"
#include "session/plan_text_internal.h"
#include "session/table_plans_internal.h"
#include "stream/manager.h"
#include "stream/query.h"

namespace fleuve::session {

namespace sc = spark::connect;

namespace {

Error NotAStream() {
  return Error(ErrorKind::kInvalidArgument, "WRITE_STREAM_NOT_ALLOWED",
               "`writeStream` can be called only on streaming Dataset/DataFrame.");
}

Result<stream::TriggerSpec> TriggerOf(const sc::WriteStreamOperationStart& start) {
  stream::TriggerSpec trigger;
  switch (start.trigger_case()) {
    case sc::WriteStreamOperationStart::kProcessingTimeInterval: {
      FLEUVE_ASSIGN(trigger.interval_ms, stream::ParseTriggerInterval(start.processing_time_interval()));
      return trigger;
    }
    case sc::WriteStreamOperationStart::kAvailableNow:
      trigger.kind = stream::TriggerKind::kAvailableNow;
      return trigger;
    case sc::WriteStreamOperationStart::kOnce:
      trigger.kind = stream::TriggerKind::kOnce;
      return trigger;
    case sc::WriteStreamOperationStart::kContinuousCheckpointInterval:
      return Error::Unsupported("the continuous trigger");
    case sc::WriteStreamOperationStart::kRealTimeBatchDuration:
      return Error::Unsupported("the real-time trigger");
    case sc::WriteStreamOperationStart::TRIGGER_NOT_SET:
      break;
  }
  return trigger;
}

/// Stops a query. One that stops itself from its own function is not waited for: its end waits for the function.
Result<void> StopFrom(const Operation& operation, const stream::QueryPtr& query) {
  if (operation.run.empty()) {
    return query->Stop();
  }
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<void>> stopped;
  };
  const auto outcome = std::make_shared<Outcome>();
  std::thread([outcome, query] {
    auto stopped = query->Stop();
    std::lock_guard lock(outcome->mutex);
    outcome->stopped = std::move(stopped);
    outcome->changed.notify_all();
  }).detach();
  const std::int64_t key = operation.token->AddCallback([outcome] {
    std::lock_guard lock(outcome->mutex);
    outcome->changed.notify_all();
  });
  std::unique_lock lock(outcome->mutex);
  outcome->changed.wait(lock, [&] { return outcome->stopped || operation.token->cancelled(); });
  Result<void> result = outcome->stopped ? *outcome->stopped : operation.token->Check();
  lock.unlock();
  operation.token->RemoveCallback(key);
  return result;
}

void FillId(const stream::Query& query, sc::StreamingQueryInstanceId* id) {
  id->set_id(query.id());
  id->set_run_id(query.run_id());
}

}  // namespace

Result<stream::QueryPtr> Executor::LaunchStream(SessionResolver& resolver, StreamStart start) {
  stream::QueryRequest request;
  request.plan = std::move(start.plan);
  request.trigger = start.trigger;
  request.sink_provider = std::move(start.sink_provider);
  connectors::SinkSpec& sink = request.sink;
  FLEUVE_ASSIGN(sink.output_mode, stream::ParseOutputMode(start.output_mode));
  sink.format =
      AsciiLower(start.format.empty() ? state_.config().GetOr("spark.sql.sources.default", "delta") : start.format);
  sink.options = std::move(start.options);
  sink.partition_by = std::move(start.partition_by);
  sink.cluster_by = std::move(start.cluster_by);
  sink.path = std::move(start.path);
  if (!sink.path.empty() && plan::FindOption(sink.options, "path") != nullptr &&
      state_.config().GetOr("spark.sql.legacy.pathOptionBehavior.enabled", "false") != "true") {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1188",
                 "There is a 'path' option set and start() is called with a path parameter. Either remove the path "
                 "option, "
                 "or call start() without the parameter. To ignore this check, set "
                 "'spark.sql.legacy.pathOptionBehavior.enabled' to 'true'.")
        .Family(ErrorFamily::kAnalysis);
  }
  if (sink.path.empty()) {
    if (const std::string* path = plan::FindOption(sink.options, "path"); path != nullptr) {
      sink.path = *path;
    }
  }
  if (!start.query_name.empty()) {
    request.name = std::move(start.query_name);
  }
  request.config = state_.FrozenSettings();
  request.state_memory_limit_bytes = state_.config().GetInt("fleuve.state.memoryLimit", 0);
  request.session_key = state_.session().key().ToString();
  const auto session = state_.session().weak_from_this();
  request.hooks.publish_view = [session](const std::string& name, std::shared_ptr<const plan::TableSource> table) {
    const auto alive = session.lock();
    if (alive != nullptr) {
      alive->state().PutView(name, LeafOf(std::move(table), {}));
    }
    return Result<void>();
  };
  request.hooks.show_text = [session](const plan::PlanPtr& plan, std::int64_t rows,
                                      std::int64_t truncate) -> Result<std::string> {
    const auto alive = session.lock();
    if (alive == nullptr) {
      return Error::Cancelled("the session has ended");
    }
    return Executor(alive->state(), nullptr).ShowText(plan, rows, truncate, false);
  };
  request.refresh_table =
      [session](
          const std::shared_ptr<const plan::TableSource>& table) -> Result<std::shared_ptr<const plan::TableSource>> {
    const auto alive = session.lock();
    if (alive == nullptr) {
      return Error::Cancelled("the session has ended");
    }
    return RefreshTable(alive->state(), table);
  };
  request.explain = [](const plan::PlanPtr& plan, bool extended) {
    return ExplainText(plan, plan, extended ? "extended" : "simple");
  };
  if (!start.table.empty()) {
    const std::vector<std::string>& parts = start.table;
    if (resolver.FindTemporaryView(parts) != nullptr) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1190",
                   "Temporary view " + Join(parts, ".") + " doesn't support streaming write.")
          .Family(ErrorFamily::kAnalysis);
    }
    FLEUVE_ASSIGN(TableTarget target, resolver.Target(parts, false));
    if (target.row && target.row->kind == catalog::TableKind::kView) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1191",
                   "Streaming into views " + Join(parts, ".") + " is not supported.")
          .Family(ErrorFamily::kAnalysis);
    }
    if (!target.is_path && !target.row) {
      // The plan must be one that can run before a table is made for it.
      FLEUVE_TRY(stream::CheckPlan(request));
      NewTable table;
      table.provider = sink.format;
      table.location = sink.path;
      table.schema = plan::SchemaOf(*request.plan).AsNullable();
      table.partition_by = sink.partition_by;
      table.cluster_by = sink.cluster_by;
      FLEUVE_TRY(MakeTable(target, table));
      FLEUVE_ASSIGN(target, resolver.Target(parts, true));
    } else if (target.provider != sink.format && !start.format.empty()) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1192",
                   "The input source(" + sink.format + ") is different from the table " + Join(parts, ".") +
                       "'s data source provider(" + target.provider + ").")
          .Family(ErrorFamily::kAnalysis);
    }
    sink.format = target.provider;
    sink.path = target.location.path;
    if (target.is_path) {
      sink.path = target.location.path;
    } else {
      sink.table_name = {"spark_catalog", target.database, target.name};
    }
  }
  if (request.sink_provider) {
    sink.format = start.sink_name;
  } else if (auto source = FindUserSource(state_, sink.format)) {
    request.sink_provider = connectors::user::MakeSinkProvider(*std::move(source));
  } else if (state_.services().connectors->sink(sink.format) == nullptr) {
    if (state_.services().connectors->source(sink.format) != nullptr || sink.format == "jdbc") {
      return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_2049",
                   "Data source " + sink.format + " does not support streamed writing.")
          .Family(ErrorFamily::kUnsupportedOperation);
    }
    return UnknownProvider(sink.format, "streaming writes");
  }
  return state_.services().queries->Start(std::move(request));
}

Result<void> Executor::StartStream(const sc::WriteStreamOperationStart& proto) {
  SessionResolver resolver(state_);
  StreamStart start;
  FLEUVE_ASSIGN(start.plan, AnalyzeWith(resolver, proto.input()));
  if (!start.plan->is_streaming) {
    return NotAStream();
  }
  FLEUVE_ASSIGN(start.trigger, TriggerOf(proto));
  FLEUVE_ASSIGN(start.sink_provider, ForeachProviderOf(proto, state_, token_));
  start.sink_name = proto.has_foreach_batch() ? "foreachbatch" : "foreach";
  start.output_mode = proto.output_mode();
  start.format = proto.format();
  start.path = proto.path();
  start.options = OptionsOf(proto.options());
  start.partition_by.assign(proto.partitioning_column_names().begin(), proto.partitioning_column_names().end());
  start.cluster_by.assign(proto.clustering_column_names().begin(), proto.clustering_column_names().end());
  start.query_name = proto.query_name();
  if (proto.has_table_name()) {
    FLEUVE_ASSIGN(start.table, sql::ParseMultipartName(proto.table_name()));
  }
  FLEUVE_ASSIGN(const stream::QueryPtr query, LaunchStream(resolver, std::move(start)));
  sc::ExecutePlanResponse message;
  auto* result = message.mutable_write_stream_operation_start_result();
  FillId(*query, result->mutable_query_id());
  result->set_name(query->name().value_or(""));
  if (state_.HasBus()) {
    result->set_query_started_event_json(query->started_event());
  }
  return operation_->sink->PutMessage(std::move(message));
}

Result<void> Executor::QueryCommand(const sc::StreamingQueryCommand& command) {
  const std::string& id = command.query_id().id();
  const std::string& run_id = command.query_id().run_id();
  const stream::QueryPtr query = state_.services().queries->Find(state_.session().key().ToString(), id, run_id);
  if (query == nullptr) {
    return Error(ErrorKind::kNotFound, "", "Streaming query " + id + " is not found")
        .Family(ErrorFamily::kIllegalArgument);
  }
  sc::ExecutePlanResponse message;
  auto* result = message.mutable_streaming_query_command_result();
  FillId(*query, result->mutable_query_id());
  switch (command.command_case()) {
    case sc::StreamingQueryCommand::kStatus: {
      const stream::QueryStatus status = query->status();
      auto* out = result->mutable_status();
      out->set_status_message(status.message);
      out->set_is_data_available(status.is_data_available);
      out->set_is_trigger_active(status.is_trigger_active);
      out->set_is_active(status.is_active);
      break;
    }
    case sc::StreamingQueryCommand::kLastProgress: {
      auto* out = result->mutable_recent_progress();
      if (const auto last = query->LastProgress(); last) {
        out->add_recent_progress_json(*last);
      }
      break;
    }
    case sc::StreamingQueryCommand::kRecentProgress: {
      auto* out = result->mutable_recent_progress();
      for (const std::string& progress : query->RecentProgress()) {
        out->add_recent_progress_json(progress);
      }
      break;
    }
    case sc::StreamingQueryCommand::kStop:
      FLEUVE_TRY(StopFrom(*operation_, query));
      break;
    case sc::StreamingQueryCommand::kProcessAllAvailable:
      operation_->repeatable = true;
      FLEUVE_TRY(query->ProcessAllAvailable(token_));
      break;
    case sc::StreamingQueryCommand::kExplain:
      result->mutable_explain()->set_result(query->Explain(command.explain().extended()));
      break;
    case sc::StreamingQueryCommand::kException:
      if (const auto failure = query->failure(); failure) {
        auto* out = result->mutable_exception();
        // Clients cut the text at its first ": ".
        out->set_exception_message("org.apache.spark.sql.streaming.StreamingQueryException: " + failure->description);
        out->set_error_class(failure->error.condition());
        out->set_stack_trace("");
      }
      break;
    case sc::StreamingQueryCommand::kAwaitTermination: {
      const auto& wait = command.await_termination();
      operation_->repeatable = !wait.has_timeout_ms();  // a second wait would have its whole time again
      FLEUVE_ASSIGN(const bool ended,
                    query->AwaitTermination(
                        wait.has_timeout_ms() ? std::optional<std::int64_t>(wait.timeout_ms()) : std::nullopt, token_));
      result->mutable_await_termination()->set_terminated(ended);
      break;
    }
    case sc::StreamingQueryCommand::COMMAND_NOT_SET:
      return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "The streaming query command is not set.");
  }
  return operation_->sink->PutMessage(std::move(message));
}

Result<void> Executor::ManagerCommand(const sc::StreamingQueryManagerCommand& command) {
  stream::Manager& queries = *state_.services().queries;
  const std::string key = state_.session().key().ToString();
  sc::ExecutePlanResponse message;
  auto* result = message.mutable_streaming_query_manager_command_result();
  const auto fill = [](const stream::Query& query,
                       sc::StreamingQueryManagerCommandResult::StreamingQueryInstance* out) {
    FillId(query, out->mutable_id());
    if (query.name()) {
      out->set_name(*query.name());
    }
  };
  switch (command.command_case()) {
    case sc::StreamingQueryManagerCommand::kActive:
      result->mutable_active();
      for (const stream::QueryPtr& query : queries.Active(key)) {
        fill(*query, result->mutable_active()->add_active_queries());
      }
      break;
    case sc::StreamingQueryManagerCommand::kGetQuery:
      if (const stream::QueryPtr query = queries.Get(key, command.get_query()); query != nullptr) {
        fill(*query, result->mutable_query());
      }
      break;
    case sc::StreamingQueryManagerCommand::kAwaitAnyTermination: {
      const auto& wait = command.await_any_termination();
      operation_->repeatable = !wait.has_timeout_ms();
      FLEUVE_ASSIGN(
          const bool ended,
          queries.AwaitAny(key, wait.has_timeout_ms() ? std::optional<std::int64_t>(wait.timeout_ms()) : std::nullopt,
                           token_));
      result->mutable_await_any_termination()->set_terminated(ended);
      break;
    }
    case sc::StreamingQueryManagerCommand::kResetTerminated:
      queries.ResetTerminated(key);
      result->set_reset_terminated(true);
      break;
    case sc::StreamingQueryManagerCommand::kAddListener:
    case sc::StreamingQueryManagerCommand::kRemoveListener:
      return Error::Unsupported("listeners that run in the server");
    case sc::StreamingQueryManagerCommand::kListListeners:
      result->mutable_list_listeners();
      break;
    case sc::StreamingQueryManagerCommand::COMMAND_NOT_SET:
      return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "The streaming query manager command is not set.");
  }
  return operation_->sink->PutMessage(std::move(message));
}

Result<Completion> Executor::BusCommand(const sc::StreamingQueryListenerBusCommand& command) {
  if (command.has_add_listener_bus_listener()) {
    return state_.StartBus(operation_) ? Completion::kLater : Completion::kNow;
  }
  state_.StopBus();
  return Completion::kNow;
}

}  // namespace fleuve::session
