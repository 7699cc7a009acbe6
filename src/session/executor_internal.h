#pragma once

/// \file
/// Runs one plan of a client: queries, commands, SQL statements. Private to this room.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "columnar/record_batch.h"
#include "session/resolver_internal.h"
#include "session/session_state_internal.h"
#include "session/workbench.h"
#include "spark/connect/base.pb.h"
#include "tables/context.h"
#include "tables/write.h"

namespace fleuve::pb {
class Command;
class CreateTable;
class CreateView;
class AlterTable;
class Insert;
class Merge;
class Name;
class Show;
class DescribeTable;
class PartitionSpec;
class Property;
}  // namespace fleuve::pb

namespace fleuve::session {

using tables::RowsResult;

/// What a run gave.
struct Collected {
  types::Schema schema;
  std::vector<columnar::RecordBatch> batches;
};

/// A table to be made.
struct NewTable {
  std::string provider;
  /// As written; empty: a managed table.
  std::string location;
  /// Declared columns; ignored where `query` is set.
  types::Schema schema;
  std::vector<std::string> partition_by;
  std::vector<std::string> cluster_by;
  std::optional<std::string> comment;
  plan::Options properties;
  plan::Options options;
  plan::PlanPtr query;
  bool replace = false;
  std::string operation = "CREATE TABLE";
};

/// A stream to be started.
struct StreamStart {
  plan::PlanPtr plan;
  stream::TriggerSpec trigger;
  std::string output_mode;
  /// As written; empty: the table's, or the session's default.
  std::string format;
  std::string path;
  plan::Options options;
  std::vector<std::string> partition_by;
  std::vector<std::string> cluster_by;
  std::string query_name;
  /// toTable(); empty: none.
  std::vector<std::string> table;
  std::shared_ptr<connectors::SinkProvider> sink_provider;
  /// How progress names `sink_provider`.
  std::string sink_name;
};

/// Threads: the one of the operation, on a big stack.
class Executor {
 public:
  /// \param operation  null for analysis alone.
  Executor(SessionState& state, OperationPtr operation);

  Result<Completion> Run(const spark::connect::Plan& plan);
  Result<void> Analyze(const spark::connect::AnalyzePlanRequest& request,
                       spark::connect::AnalyzePlanResponse* response);

  // query.cc
  Result<plan::PlanPtr> AnalyzeRelation(const spark::connect::Relation& relation);
  Result<plan::PlanPtr> AnalyzeWith(SessionResolver& resolver, const spark::connect::Relation& relation);
  Result<Collected> Collect(const plan::PlanPtr& plan);
  Result<std::vector<types::Value::List>> CollectRows(const plan::PlanPtr& plan);
  /// The value of an expression without columns.
  Result<types::Value> ValueOf(const plan::ExprPtr& expr);
  /// The text of show().
  Result<std::string> ShowText(const plan::PlanPtr& plan, std::int64_t rows, std::int64_t truncate, bool vertical);

  /// kCancelled once the operation shall end.
  Result<void> CheckCancelled() const { return token_ == nullptr ? Result<void>() : token_->Check(); }

  // streaming.cc
  Result<stream::QueryPtr> LaunchStream(SessionResolver& resolver, StreamStart start);

  // create.cc: the table's first commit or files, then its row in the catalog.
  Result<void> MakeTable(const TableTarget& target, const NewTable& table);
  // write.cc
  Result<tables::TableContext> TablesContext();
  /// Rows into a table of files; columns by name. An overwrite may change its columns.
  Result<Filled> FillFiles(const TableTarget& target, const plan::PlanPtr& input, bool overwrite);
  // alter.cc
  Result<RowsResult> CreateViewStatement(const pb::CreateView& create, const std::string& text,
                                         SessionResolver& resolver);

  // statement.cc: one SQL statement that is no query.
  Result<RowsResult> RunStatement(const pb::Command& command, SessionResolver& resolver);

 private:
  Result<void> RunRelation(const spark::connect::Relation& relation);
  /// The plan of a query that this operation runs; tells whether the operation is repeatable.
  Result<plan::PlanPtr> AnalyzeQuery(const spark::connect::Relation& relation);
  Result<void> StreamPlan(const plan::PlanPtr& plan);
  Result<void> PutRows(const RowsResult& rows);
  Result<RowsResult> ShowRows(const plan::PlanPtr& plan, std::int64_t rows, std::int64_t truncate, bool vertical,
                              bool html);

  // command.cc
  Result<Completion> RunCommand(const spark::connect::Command& command);
  Result<void> RunSqlCommand(const spark::connect::SqlCommand& command);
  Result<void> CreateView(const spark::connect::CreateDataFrameViewCommand& command);
  Result<void> Checkpoint(const spark::connect::CheckpointCommand& command);

  // functions.cc
  Result<void> RegisterFunction(const spark::connect::CommonInlineUserDefinedFunction& proto);
  Result<void> RegisterTableFunction(const spark::connect::CommonInlineUserDefinedTableFunction& proto);

  // data_sources.cc
  Result<void> RegisterDataSource(const spark::connect::CommonInlineUserDefinedDataSource& proto);
  Result<void> WriteUserSource(const connectors::user::SourceClass& source, const plan::PlanPtr& input,
                               tables::SaveMode mode, const plan::Options& options);

  // write.cc
  Result<void> Write(const spark::connect::WriteOperation& write);
  Result<void> WriteV2(const spark::connect::WriteOperationV2& write);
  Result<void> WriteDelta(const tables::TableRef& table, const plan::PlanPtr& input, const tables::WriteSpec& spec);
  Result<void> WriteFiles(const std::string& format, const std::string& path, const plan::PlanPtr& input,
                          tables::SaveMode mode, const std::vector<std::string>& partition_by,
                          const plan::Options& options);
  Result<void> SaveAsTable(const std::vector<std::string>& parts, const std::string& provider,
                           const plan::PlanPtr& input, tables::SaveMode mode,
                           const std::optional<std::vector<std::string>>& partition_by,
                           const std::vector<std::string>& cluster_by, const plan::Options& options);
  /// Writes rows into a table that exists.
  Result<void> InsertRows(const std::vector<std::string>& parts, SessionResolver& resolver, const plan::PlanPtr& input,
                          const std::function<void(tables::WriteSpec*)>& fill);

  // delta_api.cc: DeltaTable's commands; false: not one of them.
  Result<bool> DeltaCommand(const google::protobuf::Any& extension);

  // merge.cc
  Result<void> MergeCommand(const spark::connect::MergeIntoTableCommand& command);

  // streaming.cc
  Result<void> StartStream(const spark::connect::WriteStreamOperationStart& start);
  Result<void> QueryCommand(const spark::connect::StreamingQueryCommand& command);
  Result<void> ManagerCommand(const spark::connect::StreamingQueryManagerCommand& command);
  Result<Completion> BusCommand(const spark::connect::StreamingQueryListenerBusCommand& command);

  // catalog_calls.cc
  Result<RowsResult> RunCatalog(const spark::connect::Catalog& call);

  // create.cc, alter.cc, show.cc, describe.cc, dml.cc, maintenance.cc, variables.cc
  Result<RowsResult> CreateTable(const pb::CreateTable& create, SessionResolver& resolver);
  Result<RowsResult> AlterTable(const pb::AlterTable& alter, SessionResolver& resolver);
  Result<RowsResult> DropTable(const std::vector<std::string>& parts, bool if_exists, bool view,
                               SessionResolver& resolver);
  Result<RowsResult> ShowStatement(const pb::Show& show, SessionResolver& resolver);
  Result<RowsResult> Describe(const pb::DescribeTable& describe, SessionResolver& resolver);
  Result<RowsResult> Insert(const pb::Insert& insert, SessionResolver& resolver);
  Result<RowsResult> Merge(const pb::Merge& merge, SessionResolver& resolver);
  /// The rows of an INSERT with every DEFAULT replaced by its column's; nullopt where there is none.
  Result<std::optional<spark::connect::Relation>> FillDefaults(const pb::Insert& insert, SessionResolver& resolver);
  Result<RowsResult> ModifyStatement(const pb::Command& command, SessionResolver& resolver);
  Result<RowsResult> MaintenanceStatement(const pb::Command& command, SessionResolver& resolver);
  /// Clone, conversion, manifests, REORG.
  Result<RowsResult> DeltaStatement(const pb::Command& command, SessionResolver& resolver);
  struct CloneTarget {
    std::vector<std::string> parts;
    std::optional<std::string> location;
    bool replace = false;
    bool or_create = false;
    bool if_not_exists = false;
    plan::Options properties;
  };
  /// \param source  a table as its leaf, of any version.
  Result<RowsResult> Clone(const plan::PlanPtr& source, const CloneTarget& target, SessionResolver& resolver);
  /// A folder or a table of the catalog that holds Parquet files becomes a Delta table.
  Result<void> Convert(const std::vector<std::string>& parts, const types::Schema& partition_schema, bool statistics,
                       SessionResolver& resolver);
  Result<RowsResult> VariableStatement(const pb::Command& command, SessionResolver& resolver);

  /// The Delta table that a statement changes; refuses other providers by name. \param what  for the refusal.
  Result<tables::TableRef> DeltaTarget(const std::vector<std::string>& parts, SessionResolver& resolver,
                                       const std::string& what);
  /// What DELETE, UPDATE and MERGE change: a Delta table, or the one below a temporary view that shows all of it.
  struct ModifyTarget {
    tables::TableRef table;
    plan::PlanPtr leaf;
  };
  Result<ModifyTarget> TargetOfModify(const std::vector<std::string>& parts, const std::optional<std::string>& alias,
                                      SessionResolver& resolver, const std::string& what);
  /// Refuses, as Spark does, a command that only tables of other formats have.
  Result<void> NotForDelta(const std::vector<std::string>& parts, const std::string& what, SessionResolver& resolver);
  /// The kTable leaf over a table as it is now.
  Result<plan::PlanPtr> TableLeaf(const std::vector<std::string>& parts, const std::optional<std::string>& alias,
                                  SessionResolver& resolver);

  SessionState& state_;
  const OperationPtr operation_;
  const CancellationTokenPtr token_;
  std::vector<std::shared_ptr<engine::Engine>> engines_;  ///< keeps what TablesContext points to
};

/// `key -> value` of a list of properties.
plan::Options ToOptions(const google::protobuf::RepeatedPtrField<pb::Property>& properties);
std::vector<std::string> PartsOf(const pb::Name& name);
template <typename Map>
plan::Options OptionsOf(const Map& map) {
  return plan::Options(map.begin(), map.end());
}

}  // namespace fleuve::session
