#include "base/bytes.h"
#include "base/ids.h"
#include "fleuve/plan.pb.h"
#include "pipelines/definitions.h"
#include "pipelines/run.h"
#include "pipelines/standalone_internal.h"
#include "session/workbench.h"
#include "spark/connect/relations.pb.h"
#include "sql/parser.h"
#include "storage/object_store.h"

namespace fleuve::pipelines {

namespace sc = spark::connect;

namespace {

// What the catalog's row keeps of a dataset: its statement and where names in it are looked up.
constexpr const char* kKind = "fleuve.dataset";
constexpr const char* kText = "fleuve.dataset.sql";
constexpr const char* kDatabase = "fleuve.dataset.database";
constexpr const char* kCatalog = "spark_catalog";

std::string KindNote(const pb::CreatePipelineDataset& create) {
  return create.streaming() ? "streaming table" : "materialized view";
}

/// Below the warehouse: checkpoints of every such dataset, events.
std::string StorageOf(const session::Services& services) {
  return storage::ToFileUri(services.warehouse + "/_fleuve_datasets");
}

/// Runs the dataset of `create` now.
Result<void> RunDataset(session::Session& session, const pb::CreatePipelineDataset& create, const std::string& database,
                        bool reset, const session::OperationPtr& operation) {
  session::Workbench place(session.shared_from_this(), operation == nullptr ? nullptr : operation->token);
  Graph graph(NewUuid(), kCatalog, database, {});
  RunRequest request;
  FLEUVE_ASSIGN(Dataset dataset, DatasetOf(create, &request.warnings));
  FLEUVE_ASSIGN(const std::vector<std::string> name, graph.Add(std::move(dataset), database));
  if (create.table().has_query() || create.has_auto_cdc()) {
    Flow flow;
    flow.name = name;
    flow.target = name;
    flow.database = AsciiLower(database);
    flow.is_default = true;
    if (create.has_auto_cdc()) {
      FLEUVE_ASSIGN(flow.changes, RulesOf(create.auto_cdc()));
      flow.query = std::make_shared<const sc::Relation>(create.auto_cdc().source());
    } else {
      flow.query = std::make_shared<const sc::Relation>(create.table().query());
    }
    // A stream that has met new columns goes on at its next try; nobody waits for a query's second try.
    flow.conf["spark.sql.pipelines.maxFlowRetryAttempts"] = create.streaming() ? "2" : "0";
    flow.conf["spark.sql.pipelines.execution.watchdog.minRetryTime"] = "0";
    FLEUVE_TRY(graph.Add(std::move(flow)));
  }
  request.storage = StorageOf(place.services());
  if (reset) {
    request.full_refresh = {Join(name, ".")};
  }
  const auto token = operation == nullptr ? std::make_shared<CancellationToken>() : operation->token;
  return RunGraph(std::move(graph), request, session, nullptr, token);
}

Result<void> Create(session::Session& session, const pb::Command& command, const session::OperationPtr& operation) {
  const pb::CreatePipelineDataset& create = command.create_pipeline_dataset();
  if (create.view()) {
    return Error::Unsupported("CREATE LIVE VIEW outside a pipeline (use CREATE TEMPORARY VIEW)");
  }
  session::Workbench place(session.shared_from_this(), operation == nullptr ? nullptr : operation->token);
  const std::string database = place.current_database();
  const std::vector<std::string> name =
      session::FullName({create.name().parts().begin(), create.name().parts().end()}, kCatalog, database);
  FLEUVE_ASSIGN(const auto facts, place.Find(name));
  if (facts && create.if_not_exists()) {
    return {};
  }
  const auto kind = facts ? facts->notes.find(kKind) : plan::Options::const_iterator();
  const bool same_kind = facts && kind != facts->notes.end() && kind->second == KindNote(create);
  if (facts && (!same_kind || (!create.or_refresh() && !create.or_replace()))) {
    return Error(ErrorKind::kAlreadyExists, "TABLE_OR_VIEW_ALREADY_EXISTS",
                 "Cannot create table or view " + QuotedName(name) +
                     " because it already exists. Choose a different name, drop or replace the existing object, or add "
                     "the IF NOT EXISTS clause to tolerate pre-existing objects.")
        .With("relationName", QuotedName(name));
  }
  // A table of this name that was dropped has left its checkpoint: a new one begins anew.
  auto done = RunDataset(session, create, database, !facts && create.streaming(), operation);
  if (!done.ok()) {
    if (!facts) {
      place.RunSql("DROP TABLE IF EXISTS " + QuotedName(name)).IgnoreBecause("the statement's own error is told");
    }
    return done;
  }
  plan::Options notes;
  notes[kKind] = KindNote(create);
  notes[kText] = command.sql_text();
  notes[kDatabase] = database;
  return place.SetNotes(name, notes);
}

Result<void> Refresh(session::Session& session, const pb::RefreshDataset& refresh,
                     const session::OperationPtr& operation) {
  session::Workbench place(session.shared_from_this(), operation == nullptr ? nullptr : operation->token);
  const std::vector<std::string> parts(refresh.name().parts().begin(), refresh.name().parts().end());
  const std::vector<std::string> name = session::FullName(parts, kCatalog, place.current_database());
  const std::string kind = refresh.streaming() ? "streaming table" : "materialized view";
  FLEUVE_ASSIGN(const auto facts, place.Find(name));
  if (!facts) {
    return Error(ErrorKind::kNotFound, "TABLE_OR_VIEW_NOT_FOUND",
                 "The table or view " + QuotedName(parts) + " cannot be found.")
        .With("relationName", QuotedName(parts));
  }
  const auto known = facts->notes.find(kKind);
  if (known == facts->notes.end() || known->second != kind) {
    return Error(ErrorKind::kInvalidArgument, "WRONG_COMMAND_FOR_OBJECT_TYPE",
                 "The operation REFRESH " + AsciiUpper(kind) + " requires a " + kind + ". But " + QuotedName(name) +
                     " is a " + (known == facts->notes.end() ? "table that no such statement made" : known->second) +
                     ".")
        .With("operation", "REFRESH " + AsciiUpper(kind));
  }
  FLEUVE_ASSIGN(const sql::Statement statement, sql::ParseStatement(facts->notes.at(kText), place.ParserSettings()));
  if (statement.command == nullptr || !statement.command->has_create_pipeline_dataset()) {
    return Error::Internal("the definition of " + Join(name, ".") + " is no definition of a dataset");
  }
  return RunDataset(session, statement.command->create_pipeline_dataset(), facts->notes.at(kDatabase), refresh.full(),
                    operation);
}

}  // namespace

Result<void> RunDatasetStatement(session::Session& session, const pb::Command& command,
                                 const session::OperationPtr& operation) {
  if (command.has_refresh_dataset()) {
    return Refresh(session, command.refresh_dataset(), operation);
  }
  return Create(session, command, operation);
}

}  // namespace fleuve::pipelines
