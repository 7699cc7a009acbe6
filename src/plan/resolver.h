#pragma once

/// \file
/// What the analyzer asks of the session: tables, views, sources, settings. Implemented by `session`.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"

namespace google::protobuf {
class Any;
}

namespace spark::connect {
class Expression;
class Relation;
class SQL;
}  // namespace spark::connect

namespace fleuve::plan {

/// Settings that analysis depends on, read once per analysis.
struct AnalysisConfig {
  bool ansi = true;
  bool case_sensitive = false;
  std::string session_zone = "UTC";
  /// Value of current_timestamp() in this execution: microseconds since the epoch.
  std::int64_t now_micros = 0;
  std::string current_catalog = "spark_catalog";
  std::string current_database = "default";
  std::string current_user;
  bool legacy_size_of_null = false;
  /// Further settings by key (`spark.sql....`); defaults applied.
  std::function<std::optional<std::string>(const std::string& key)> conf;
};

/// What a table name stands for. Exactly one member is set.
struct ResolvedTable {
  std::shared_ptr<const TableSource> table;
  std::shared_ptr<const StreamRelation> stream;
  /// A view: its plan as written (analyzed anew at each use), or already typed (a temporary view of a DataFrame).
  std::shared_ptr<const spark::connect::Relation> view;
  PlanPtr view_plan;
  /// Full name for column qualifiers: catalog, database, table (temporary view: its name only).
  std::vector<std::string> qualified_name;
};

class ExternalRuntime;

/// A function that a user wrote in SQL or registered.
struct SqlFunction {
  std::string name;
  std::vector<types::StructField> parameters;
  /// One per parameter; null where it has no default.
  std::vector<std::shared_ptr<const spark::connect::Expression>> defaults;
  /// Of a scalar function; void = the body's type. Of a table function: a struct.
  types::DataType return_type;
  /// Exactly one is set: scalar or table function.
  std::shared_ptr<const spark::connect::Expression> body;
  std::shared_ptr<const spark::connect::Relation> query;
  /// A function in another language instead of a body or a query; `parameters` are then unknown.
  std::shared_ptr<const ExternalFunction> external;
};

/// A session variable.
struct SessionVariable {
  std::string name;
  types::Value value;
  types::DataType type;
};

/// A constant argument of a table function of the session.
struct TableFunctionArgument {
  /// Empty: positional.
  std::string name;
  /// Strings as they are, numbers and booleans as text.
  std::string text;
  /// Entries of a `map(...)`; then `text` is empty.
  std::vector<std::pair<std::string, std::string>> entries;
  /// The constant itself (table_changes).
  types::Value value;
  types::DataType type;
};

/// Threads: one analysis at a time calls it.
class Resolver {
 public:
  virtual ~Resolver() = default;
  virtual AnalysisConfig Config() = 0;
  /// TABLE_OR_VIEW_NOT_FOUND (kNotFound) where nothing has this name. \param parts  one to three name parts; also
  /// `delta`.`/path` style names.
  virtual Result<ResolvedTable> ResolveTable(const std::vector<std::string>& parts, const Options& options,
                                             bool is_streaming) = 0;
  /// `spark.read.format(f).schema(s).options(o).load(paths)`. \param format  empty = the session's default.
  virtual Result<ResolvedTable> ResolveDataSource(const std::string& format, const std::optional<types::Schema>& schema,
                                                  const Options& options, const std::vector<std::string>& paths,
                                                  const std::vector<std::string>& predicates, bool is_streaming) = 0;
  /// A plan that the session keeps for the client (foreachBatch, checkpoint()).
  virtual Result<PlanPtr> ResolveCachedRelation(const std::string& id) = 0;
  /// Bytes of a `cache/<hash>` artifact.
  virtual Result<std::string> CachedArtifact(const std::string& hash) = 0;
  /// Parses SQL text into a relation (query) for `spark.sql(...)` inside plans, and an expression for expr("...").
  virtual Result<std::shared_ptr<const spark::connect::Relation>> ParseQuery(const std::string& sql) = 0;
  /// Parses a `Relation.sql` with its named and positional arguments filled in.
  virtual Result<std::shared_ptr<const spark::connect::Relation>> ParseSql(const spark::connect::SQL& sql) = 0;
  /// Runs an analyzed plan and returns its rows, for the few analyses that depend on data (pivot without values, ...).
  virtual Result<std::vector<types::Value::List>> RunQuery(const PlanPtr& plan) {
    (void)plan;
    return Error::Unsupported("an analysis that has to run a query first");
  }
  /// `RunQuery` for later: may be called when the analysis is over and its session is gone, with the settings of now.
  virtual Result<std::function<Result<std::vector<types::Value::List>>(const PlanPtr&)>> QueryRunner() {
    return Error::Unsupported("a plan that has to run a query first");
  }
  /// A function of the user; nullopt where there is none of this name. \param parts  one to three name parts.
  virtual Result<std::optional<SqlFunction>> ResolveFunction(const std::vector<std::string>& parts) {
    (void)parts;
    return std::optional<SqlFunction>();
  }
  /// `read_files(...)`, `cloud_files(...)`, `cloud_files_state(...)`. \param function  lower case; \param is_streaming
  /// STREAM stands before it.
  virtual Result<ResolvedTable> ResolveTableFunction(const std::string& function,
                                                     const std::vector<TableFunctionArgument>& arguments,
                                                     bool is_streaming) {
    (void)arguments;
    (void)is_streaming;
    return Error::Unsupported("the table function " + function);
  }
  /// A relation of an extension that the session knows (Delta's own messages); nullopt: unknown.
  virtual Result<std::optional<PlanPtr>> ResolveExtension(const google::protobuf::Any& extension) {
    (void)extension;
    return std::optional<PlanPtr>();
  }
  /// Where functions in other languages run; null: nowhere.
  virtual std::shared_ptr<ExternalRuntime> External() { return nullptr; }
  /// A session variable; nullopt where there is none. \param parts  `x`, `session.x`, `system.session.x`.
  virtual Result<std::optional<SessionVariable>> ResolveVariable(const std::vector<std::string>& parts) {
    (void)parts;
    return std::optional<SessionVariable>();
  }
};

}  // namespace fleuve::plan
