#pragma once

/// \file
/// What the rooms above do in a session for its user: analyze with names of their own, make and fill tables, start
/// streams.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/result.h"
#include "connectors/sink.h"
#include "engine/engine.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"
#include "session/session.h"
#include "sql/parser.h"
#include "stream/query.h"

namespace spark::connect {
class Relation;
}
namespace fleuve::pb {
class ColumnDefinition;
}

namespace fleuve::session {

/// Names that an analysis looks up before those of the session. Threads: one analysis at a time.
class NameScope {
 public:
  virtual ~NameScope() = default;
  struct Answer {
    /// What the name stands for.
    std::optional<plan::ResolvedTable> table;
    /// Else: the session's table of this name.
    std::vector<std::string> renamed;
  };
  /// Nullopt: none of these names, the session answers. \param parts  as written.
  virtual Result<std::optional<Answer>> Resolve(const std::vector<std::string>& parts, const plan::Options& options,
                                                bool is_streaming) = 0;
  /// Options of a streaming source as this place wants them (a location of its state, say).
  virtual plan::Options SourceOptions(const std::string& format, plan::Options options) {
    (void)format;
    return options;
  }
};

/// A table to be made.
struct TableDraft {
  /// Database and table, perhaps a catalog before them.
  std::vector<std::string> name;
  /// Lower case; empty: the session's default.
  std::string format;
  types::Schema schema;
  std::vector<std::string> partition_by;
  std::vector<std::string> cluster_by;
  std::optional<std::string> comment;
  plan::Options properties;
};

/// A table that is there.
struct TableFacts {
  bool is_view = false;
  std::string format;
  types::Schema schema;
  std::vector<std::string> partition_by;
  std::vector<std::string> cluster_by;
  std::optional<std::string> comment;
  plan::Options properties;
  /// The newest version of a Delta table; -1 for others.
  std::int64_t version = -1;
  /// Properties of the catalog's row: nobody but the server sees them.
  plan::Options notes;
};

/// A write of rows.
struct Fill {
  /// Replaces content and schema in the same commit; else rows are added.
  bool overwrite = false;
  /// Adds columns that the table lacks.
  bool merge_schema = false;
  /// A write of this application and number happens once; empty: always.
  std::string app_id;
  std::int64_t app_version = 0;
};

struct Filled {
  /// False: the application's write had been there.
  bool written = true;
  std::int64_t rows = 0;
  /// observe() of the plan.
  std::vector<engine::ObservedMetrics> metrics;
};

/// A stream to be started; it reads what is there and ends.
struct StreamDraft {
  plan::PlanPtr plan;
  /// A table that exists; else `format` and `options` say where the rows go.
  std::vector<std::string> table;
  std::string format;
  plan::Options options;
  std::string checkpoint;
  /// Takes the batches instead of a sink of the process; `format` is its name then.
  std::shared_ptr<connectors::SinkProvider> sink_provider;
};

/// A name of one to three parts as all three, in lower case but for the catalog as it is given.
std::vector<std::string> FullName(const std::vector<std::string>& parts, const std::string& catalog,
                                  const std::string& database);

/// Threads: one at a time; several objects may stand beside each other in one session.
class Workbench {
 public:
  /// \param token  ends what runs; may be null.
  Workbench(SessionPtr session, CancellationTokenPtr token);
  ~Workbench();

  Session& session() { return *session_; }
  sql::ParserOptions ParserSettings();
  const Services& services() const { return *services_; }
  std::string current_database();
  /// SCHEMA_NOT_FOUND.
  Result<void> SetCurrentDatabase(const std::string& name);

  /// \param names  may be null.
  Result<plan::PlanPtr> Analyze(const spark::connect::Relation& relation, NameScope* names);

  /// Nullopt where the catalog has no such table.
  Result<std::optional<TableFacts>> Find(const std::vector<std::string>& name);
  Result<void> Create(const TableDraft& draft);
  /// The table takes the columns of `schema` that it lacks.
  Result<void> AddColumns(const std::vector<std::string>& name, const types::Schema& schema);
  /// No row is left and the columns are those of `schema`; one commit. Tables of files are refused.
  Result<void> Empty(const std::vector<std::string>& name, const types::Schema& schema);
  Result<void> SetProperties(const std::vector<std::string>& name, const plan::Options& properties);
  Result<void> SetComment(const std::vector<std::string>& name, const std::optional<std::string>& comment);
  Result<void> SetClustering(const std::vector<std::string>& name, const std::vector<std::string>& columns);
  /// Replaces the notes of the catalog's row.
  Result<void> SetNotes(const std::vector<std::string>& name, const plan::Options& notes);
  /// A view of the catalog; replaces one of this name. \param text  its query.
  Result<void> PublishView(const std::vector<std::string>& name, const std::string& text,
                           const spark::connect::Relation& query, const std::optional<std::string>& comment,
                           const plan::Options& properties);

  /// Columns are found by name. \param plan  analyzed batch plan.
  Result<Filled> Write(const std::vector<std::string>& name, const plan::PlanPtr& plan, const Fill& fill);
  Result<stream::QueryPtr> Start(const StreamDraft& draft);

  /// A temporary view of the session over rows.
  void PutRows(const std::string& view, const types::Schema& schema, std::vector<columnar::RecordBatch> batches);
  void DropRows(const std::string& view);
  /// Runs one SQL command in the session.
  Result<void> RunSql(const std::string& text);
  /// The rows of one SQL query.
  Result<std::vector<types::Value::List>> Query(const std::string& text);

 private:
  const SessionPtr session_;
  const CancellationTokenPtr token_;
  const Services* const services_;
};

/// A declared column with the metadata that Spark keeps of it.
Result<types::StructField> DeclaredColumn(const pb::ColumnDefinition& column);
/// The schema's rows: none. A leaf to analyze against.
plan::PlanPtr NoRows(const types::Schema& schema);

}  // namespace fleuve::session
