#pragma once

/// \file
/// Names to tables, views and sources, for one analysis. Private to this room.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "delta/table_source.h"
#include "plan/resolver.h"
#include "session/session_state_internal.h"
#include "sql/parser.h"
#include "storage/object_store.h"

namespace fleuve::session {

/// A Delta table at a version that does not move (time travel).
class PinnedTable final : public plan::TableSource, public plan::RowIdSource {
 public:
  explicit PinnedTable(std::shared_ptr<const delta::DeltaTable> table) : table_(std::move(table)) {}
  const types::Schema& schema() const override { return table_->schema(); }
  std::string name() const override { return table_->name(); }
  std::string provider() const override { return "delta"; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>& filters,
                                                         const std::vector<plan::Attribute>& columns) const override {
    return table_->PlanScan(filters, columns);
  }
  bool has_row_ids() const override { return table_->has_row_ids(); }
  Result<std::shared_ptr<const plan::FileScan>> PlanRowIdScan(
      const std::vector<plan::ExprPtr>& filters, const std::vector<plan::Attribute>& columns) const override {
    return table_->PlanRowIdScan(filters, columns);
  }
  const std::shared_ptr<const delta::DeltaTable>& table() const { return table_; }

 private:
  std::shared_ptr<const delta::DeltaTable> table_;
};

/// Where a table name leads.
struct TableTarget {
  /// Of a catalog table: lower-case database and name; empty for a path.
  std::string database;
  std::string name;
  /// The catalog's row; nullopt for a path or a missing table.
  std::optional<catalog::Table> row;
  /// `delta`, `parquet`, ...
  std::string provider;
  storage::Location location;
  /// `spark_catalog.default.t` or delta.`/path`.
  std::string display;
  bool is_path = false;
};

class NameScope;

/// Threads: one analysis.
class SessionResolver final : public plan::Resolver {
 public:
  explicit SessionResolver(SessionState& state) : state_(state), database_(state.current_database()) {}
  SessionResolver(SessionState& state, std::string database) : state_(state), database_(std::move(database)) {}

  plan::AnalysisConfig Config() override;
  Result<plan::ResolvedTable> ResolveTable(const std::vector<std::string>& parts, const plan::Options& options,
                                           bool is_streaming) override;
  Result<plan::ResolvedTable> TableChanges(const std::string& function,
                                           const std::vector<plan::TableFunctionArgument>& arguments);
  Result<plan::ResolvedTable> ResolveTableFunction(const std::string& function,
                                                   const std::vector<plan::TableFunctionArgument>& arguments,
                                                   bool is_streaming) override;
  Result<plan::ResolvedTable> ResolveDataSource(const std::string& format, const std::optional<types::Schema>& schema,
                                                const plan::Options& options, const std::vector<std::string>& paths,
                                                const std::vector<std::string>& predicates, bool is_streaming) override;
  Result<plan::PlanPtr> ResolveCachedRelation(const std::string& id) override;
  Result<std::string> CachedArtifact(const std::string& hash) override;
  Result<std::shared_ptr<const spark::connect::Relation>> ParseQuery(const std::string& sql) override;
  Result<std::shared_ptr<const spark::connect::Relation>> ParseSql(const spark::connect::SQL& sql) override;
  Result<std::vector<types::Value::List>> RunQuery(const plan::PlanPtr& plan) override;
  Result<std::function<Result<std::vector<types::Value::List>>(const plan::PlanPtr&)>> QueryRunner() override;
  Result<std::optional<plan::SqlFunction>> ResolveFunction(const std::vector<std::string>& parts) override;
  std::shared_ptr<plan::ExternalRuntime> External() override;
  Result<std::optional<plan::SessionVariable>> ResolveVariable(const std::vector<std::string>& parts) override;

  Result<std::optional<plan::PlanPtr>> ResolveExtension(const google::protobuf::Any& extension) override;

  /// A view that only this analysis sees (DataFrame arguments of a SQL command).
  void AddLocalView(const std::string& name, plan::PlanPtr plan);

  /// Splits and checks a table name; the row is set where the catalog has it. \param must_exist
  /// TABLE_OR_VIEW_NOT_FOUND.
  Result<TableTarget> Target(const std::vector<std::string>& parts, bool must_exist);
  /// The temporary view of this name (local or `global_temp`), or null.
  TemporaryViewPtr FindTemporaryView(const std::vector<std::string>& parts);
  sql::ParserOptions ParserSettings();
  /// One statement with its arguments filled in.
  Result<sql::Statement> ParseStatement(const spark::connect::SQL& sql);
  const std::string& database() const { return database_; }
  /// Ends queries that the analysis itself runs.
  void set_token(CancellationTokenPtr token) { token_ = std::move(token); }
  /// Names that go before the session's own; null: none. Not inside views of the catalog.
  void set_names(NameScope* names) { names_ = names; }
  bool HasLocalViews() const { return !local_views_.empty(); }
  const std::set<std::string>& used_views() const { return *used_views_; }
  /// True once a relation was met that changes something when it is analyzed.
  bool has_effects() const { return has_effects_; }

 private:
  Result<plan::ResolvedTable> OpenDelta(const storage::Location& location, const std::string& display,
                                        const plan::Options& options, std::vector<std::string> qualified_name);
  Result<plan::ResolvedTable> ResolveOwnTable(const std::vector<std::string>& parts, const plan::Options& options,
                                              bool is_streaming);
  Result<plan::PlanPtr> ExpandView(const std::string& name, const std::string& text, const std::string& database,
                                   const types::Schema& schema);
  Result<plan::ResolvedTable> OpenStream(const std::string& format, const std::optional<types::Schema>& schema,
                                         const plan::Options& options, std::vector<std::string> paths,
                                         std::vector<std::string> table_name);

  SessionState& state_;
  const std::string database_;
  std::map<std::string, TemporaryViewPtr> local_views_;
  /// Lower-case names of temporary views that this analysis used, those inside views included.
  std::shared_ptr<std::set<std::string>> used_views_ = std::make_shared<std::set<std::string>>();
  std::optional<plan::AnalysisConfig> config_;
  int view_depth_ = 0;
  bool has_effects_ = false;
  CancellationTokenPtr token_;
  NameScope* names_ = nullptr;
};

/// The plan with every Delta table as it is now: what a view that was analyzed earlier reads today.
Result<plan::PlanPtr> RefreshTables(SessionState& state, const plan::PlanPtr& plan);
/// The newest snapshot of a Delta table where it has moved, else `table` itself.
Result<std::shared_ptr<const plan::TableSource>> RefreshTable(SessionState& state,
                                                              const std::shared_ptr<const plan::TableSource>& table);
/// A table path without the `@v12` or `@yyyyMMddHHmmssSSS` at its end.
std::string PathWithoutVersion(std::string path);
/// Says that a statement cannot change the old version that the path names.
Error OldVersionRefused(const std::string& path);
/// TABLE_OR_VIEW_NOT_FOUND naming the parts.
Error TableNotFound(const std::vector<std::string>& parts);
/// `a`.`b`.
std::string QuoteParts(const std::vector<std::string>& parts);

}  // namespace fleuve::session
