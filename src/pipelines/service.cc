#include "pipelines/service.h"

#include <map>
#include <mutex>

#include "base/bytes.h"
#include "base/ids.h"
#include "fleuve/plan.pb.h"
#include "pipelines/definitions.h"
#include "pipelines/graph.h"
#include "pipelines/run.h"
#include "pipelines/standalone_internal.h"
#include "session/session.h"
#include "spark/connect/base.pb.h"

namespace fleuve::pipelines {

namespace sc = spark::connect;

namespace {

/// A graph that a client builds.
struct OpenGraph {
  OpenGraph(std::string id, std::string catalog, std::string database, std::map<std::string, std::string> conf)
      : graph(std::move(id), std::move(catalog), std::move(database), std::move(conf)) {}
  /// Held while the graph grows; a run works on a copy.
  std::mutex mutex;
  Graph graph;
  /// Table properties that nobody reads: told at the next run.
  std::vector<std::string> unknown;
  /// Ends the runs of a graph that is dropped.
  CancellationTokenPtr dropped = std::make_shared<CancellationToken>();
};

using OpenGraphPtr = std::shared_ptr<OpenGraph>;

void Fill(const std::vector<std::string>& name, sc::ResolvedIdentifier* out) {
  if (name.size() > 2) {
    out->set_catalog_name(name[0]);
  }
  for (std::size_t i = name.size() > 2 ? 1 : 0; i + 1 < name.size(); ++i) {
    out->add_namespace_(name[i]);
  }
  out->set_table_name(name.back());
}

class Service final : public session::Pipelines {
 public:
  Result<void> Run(session::Session& session, const sc::PipelineCommand& command,
                   const session::OperationPtr& operation) override;
  Result<void> RunStatement(session::Session& session, const pb::Command& command,
                            const session::OperationPtr& operation) override {
    return RunDatasetStatement(session, command, operation);
  }
  void Forget(const std::string& server_side_id) override;

 private:
  Result<OpenGraphPtr> Find(const session::Session& session, const std::string& id);
  Result<void> Create(session::Session& session, const sc::PipelineCommand::CreateDataflowGraph& create,
                      sc::ExecutePlanResponse* response);
  Result<void> Start(session::Session& session, const sc::PipelineCommand::StartRun& start,
                     const session::OperationPtr& operation);
  Result<void> Drop(const session::Session& session, const std::string& id);

  std::mutex mutex_;
  /// By the session's id and the graph's.
  std::map<std::string, std::map<std::string, OpenGraphPtr>> graphs_;
};

Result<OpenGraphPtr> Service::Find(const session::Session& session, const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto own = graphs_.find(session.server_side_id());
  const auto found = own == graphs_.end() ? decltype(own->second.find(id)){} : own->second.find(id);
  if (own == graphs_.end() || found == own->second.end()) {
    return Error(ErrorKind::kNotFound, "DATAFLOW_GRAPH_NOT_FOUND",
                 "Dataflow graph with id " + id + " could not be found")
        .With("graphId", id);
  }
  return found->second;
}

Result<void> Service::Create(session::Session& session, const sc::PipelineCommand::CreateDataflowGraph& create,
                             sc::ExecutePlanResponse* response) {
  const std::string catalog = create.default_catalog().empty() ? "spark_catalog" : AsciiLower(create.default_catalog());
  if (catalog != "spark_catalog") {
    return Error(ErrorKind::kNotFound, "CATALOG_NOT_FOUND",
                 "The catalog `" + create.default_catalog() +
                     "` not found. Consider to set the SQL config "
                     "\"spark.sql.catalog." +
                     create.default_catalog() + "\" to a catalog plugin.")
        .With("catalogName", "`" + create.default_catalog() + "`");
  }
  session::Workbench place(session.shared_from_this(), nullptr);
  if (!create.default_database().empty()) {
    FLEUVE_TRY(place.SetCurrentDatabase(create.default_database()));
  }
  const std::string id = NewUuid();
  auto graph = std::make_shared<OpenGraph>(
      id, catalog, place.current_database(),
      std::map<std::string, std::string>(create.sql_conf().begin(), create.sql_conf().end()));
  {
    std::lock_guard lock(mutex_);
    graphs_[session.server_side_id()].emplace(id, std::move(graph));
  }
  response->mutable_pipeline_command_result()->mutable_create_dataflow_graph_result()->set_dataflow_graph_id(id);
  return {};
}

Result<void> Service::Drop(const session::Session& session, const std::string& id) {
  FLEUVE_ASSIGN(const OpenGraphPtr graph, Find(session, id));
  {
    std::lock_guard lock(mutex_);
    graphs_[session.server_side_id()].erase(id);
  }
  graph->dropped->Cancel();
  return {};
}

Result<void> Service::Start(session::Session& session, const sc::PipelineCommand::StartRun& start,
                            const session::OperationPtr& operation) {
  FLEUVE_ASSIGN(const OpenGraphPtr open, Find(session, start.dataflow_graph_id()));
  std::optional<Graph> graph;
  std::vector<std::string> unknown;
  {
    std::lock_guard lock(open->mutex);
    graph.emplace(open->graph);
    unknown = open->unknown;
  }
  RunRequest request;
  request.refresh.assign(start.refresh_selection().begin(), start.refresh_selection().end());
  request.full_refresh.assign(start.full_refresh_selection().begin(), start.full_refresh_selection().end());
  request.full_refresh_all = start.full_refresh_all();
  request.dry = start.dry();
  request.storage = start.storage();
  for (const std::string& key : unknown) {
    request.warnings.push_back("The table property '" + key + "' is not known and has no effect.");
  }
  // The run ends with its operation or with its graph.
  const auto token = std::make_shared<CancellationToken>();
  const auto cancel = [token] { token->Cancel(); };
  const std::int64_t of_operation = operation->token->AddCallback(cancel);
  const std::int64_t of_graph = open->dropped->AddCallback(cancel);
  auto done = RunGraph(*std::move(graph), request, session, operation, token);
  operation->token->RemoveCallback(of_operation);
  open->dropped->RemoveCallback(of_graph);
  return done;
}

Result<void> Service::Run(session::Session& session, const sc::PipelineCommand& command,
                          const session::OperationPtr& operation) {
  sc::ExecutePlanResponse response;
  auto* result = response.mutable_pipeline_command_result();
  switch (command.command_type_case()) {
    case sc::PipelineCommand::kCreateDataflowGraph:
      FLEUVE_TRY(Create(session, command.create_dataflow_graph(), &response));
      break;
    case sc::PipelineCommand::kDefineOutput: {
      FLEUVE_ASSIGN(const OpenGraphPtr open, Find(session, command.define_output().dataflow_graph_id()));
      std::lock_guard lock(open->mutex);
      FLEUVE_ASSIGN(const auto name, Define(command.define_output(), &open->graph, &open->unknown));
      Fill(name, result->mutable_define_output_result()->mutable_resolved_identifier());
      break;
    }
    case sc::PipelineCommand::kDefineFlow: {
      FLEUVE_ASSIGN(const OpenGraphPtr open, Find(session, command.define_flow().dataflow_graph_id()));
      std::lock_guard lock(open->mutex);
      FLEUVE_ASSIGN(const auto name, Define(command.define_flow(), &open->graph));
      Fill(name, result->mutable_define_flow_result()->mutable_resolved_identifier());
      break;
    }
    case sc::PipelineCommand::kDefineSqlGraphElements: {
      const auto& define = command.define_sql_graph_elements();
      FLEUVE_ASSIGN(const OpenGraphPtr open, Find(session, define.dataflow_graph_id()));
      session::Workbench place(session.shared_from_this(), operation->token);
      std::lock_guard lock(open->mutex);
      FLEUVE_TRY(DefineSql(define.sql_text(), define.sql_file_path(), place, &open->graph, &open->unknown));
      break;
    }
    case sc::PipelineCommand::kStartRun:
      FLEUVE_TRY(Start(session, command.start_run(), operation));
      break;
    case sc::PipelineCommand::kDropDataflowGraph:
      FLEUVE_TRY(Drop(session, command.drop_dataflow_graph().dataflow_graph_id()));
      break;
    case sc::PipelineCommand::kExtension:
      return Error::Unsupported("the pipeline command extension " + command.extension().type_url());
    case sc::PipelineCommand::COMMAND_TYPE_NOT_SET:
      return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "The pipeline command is not set.");
    default: {
      const auto* field = sc::PipelineCommand::descriptor()->FindFieldByNumber(command.command_type_case());
      return Error::Unsupported("the pipeline command " +
                                (field == nullptr ? std::string("of a newer version") : std::string(field->name())));
    }
  }
  return operation->sink->PutMessage(std::move(response));
}

void Service::Forget(const std::string& server_side_id) {
  std::map<std::string, OpenGraphPtr> gone;
  {
    std::lock_guard lock(mutex_);
    const auto found = graphs_.find(server_side_id);
    if (found == graphs_.end()) {
      return;
    }
    gone = std::move(found->second);
    graphs_.erase(found);
  }
  for (const auto& [id, graph] : gone) {
    graph->dropped->Cancel();
  }
}

}  // namespace

std::shared_ptr<session::Pipelines> MakePipelines() { return std::make_shared<Service>(); }

}  // namespace fleuve::pipelines
