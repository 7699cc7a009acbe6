#pragma once

/// \file
/// The analyzer: one object per analysis. Methods are spread over analyzer_*.cc by subject.

#include <fleuve/plan.pb.h>
#include <spark/connect/expressions.pb.h>
#include <spark/connect/relations.pb.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/analyzer.h"
#include "plan/coercion.h"
#include "plan/function_builder.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"

namespace fleuve::plan {

namespace sc = spark::connect;

/// How Spark shows what stands for an earlier item of the list, or for a session variable, inside other expressions.
inline constexpr std::string_view kAliasReference = "lateralAliasReference(";
inline constexpr std::string_view kVariableReference = "variablereference(";

/// One item of a select list after expansion.
struct SelectItem {
  /// Null for a generator.
  ExprPtr expr;
  /// Name of the output column.
  std::string name;
  /// True where the user gave the name, so that the column is a new one even if `expr` is a plain attribute.
  bool is_alias = false;
  Json metadata;
  /// A generator, with the names the user gave (none: the generator's own).
  std::optional<GeneratorResult> generator;
  std::vector<std::string> names;
};

/// Where the names of an expression are looked up.
struct Scope {
  /// Columns, nearest tier first: the input's columns, then columns further below that can be brought up.
  std::vector<const std::vector<Attribute>*> tiers;
  /// Select items already analyzed, for lateral column aliases; null = none.
  const std::vector<SelectItem>* aliases = nullptr;
  /// Parameters of enclosing lambdas, innermost last.
  std::vector<std::vector<Attribute>> lambdas;
  /// Grouping expressions of an enclosing grouping set query, for grouping() and grouping_id().
  const std::vector<ExprPtr>* grouping_sets = nullptr;
  ExprPtr grouping_id;
  /// Where the arguments of aggregate functions are looked up instead (HAVING, ORDER BY over an aggregate).
  const std::vector<Attribute>* aggregate_input = nullptr;
  /// Parameters of a SQL function under expansion; null = none.
  const std::vector<std::pair<std::string, ExprPtr>>* function_parameters = nullptr;
};

/// A common table expression in scope.
struct CommonTable {
  std::string name;
  /// Null while its own definition is analyzed.
  PlanPtr plan;
};

/// Identifier text split into its parts. PARSE_SYNTAX_ERROR or INVALID_ATTRIBUTE_NAME_SYNTAX otherwise.
Result<std::vector<std::string>> SplitIdentifier(std::string_view text);
std::string QuoteParts(const std::vector<std::string>& parts);
bool EqualNames(std::string_view a, std::string_view b, bool case_sensitive);
std::string LowerName(std::string_view text);
Error UnresolvedColumn(const std::vector<std::string>& parts, const std::vector<const std::vector<Attribute>*>& tiers);
/// True for errors that say that a name stands for nothing here.
bool IsUnresolvedColumn(const Error& error);
bool HasAggregate(const ExprPtr& expr);
bool HasWindow(const ExprPtr& expr);
/// The same plan with fresh attribute ids throughout.
PlanPtr FreshInstance(const PlanPtr& plan);
/// Refuses fields that this build's protocol does not know, by number and message.
Result<void> CheckUnknownFields(const google::protobuf::Message& message);
std::string TypesSql(const types::DataType& type);

struct ExternalContext;
enum class ExternalKind;

class Analyzer {
 public:
  explicit Analyzer(Resolver& resolver);

  Result<PlanPtr> Relation(const sc::Relation& relation);
  Result<ExprPtr> Expression(const sc::Expression& expression, const Scope& scope);
  const AnalysisConfig& config() const { return config_; }

  Scope ScopeOf(const PlanPtr& plan) const;

 private:
  // Relations (analyzer_relation.cc, analyzer_source.cc).
  Result<PlanPtr> RelationBody(const sc::Relation& relation);
  Result<PlanPtr> ExtensionRelation(const sc::Relation& relation);
  Result<PlanPtr> Read(const sc::Read& read);
  Result<PlanPtr> NamedTable(const std::vector<std::string>& parts, const Options& options, bool is_streaming);
  Result<PlanPtr> FromResolved(const ResolvedTable& table);
  Result<PlanPtr> Sql(const sc::SQL& sql);
  Result<PlanPtr> LocalRelation(const sc::LocalRelation& relation);
  Result<PlanPtr> ChunkedLocalRelation(const sc::ChunkedCachedLocalRelation& relation);
  Result<PlanPtr> LocalRows(std::vector<std::string> streams, const std::string& schema_text);
  /// \param parts  the number of partitions asked for; 0 = none
  Result<PlanPtr> Range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t parts = 0);
  Result<PlanPtr> SubqueryAlias(PlanPtr input, const std::string& alias, const std::vector<std::string>& qualifier);
  Result<PlanPtr> TableFunction(const std::string& name,
                                const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                                bool is_streaming = false);
  /// read_files and its like: constant arguments for the session.
  Result<PlanPtr> FileFunction(const std::string& name,
                               const google::protobuf::RepeatedPtrField<spark::connect::Expression>& arguments,
                               bool is_streaming);
  Result<PlanPtr> WithRelations(const sc::WithRelations& relation);
  Result<PlanPtr> WithTables(const fleuve::pb::With& with);
  Result<PlanPtr> RecursiveTable(const fleuve::pb::CommonTable& table);
  Result<PlanPtr> Renamed(PlanPtr plan, const fleuve::pb::CommonTable& table);
  Result<PlanPtr> InlineTable(const fleuve::pb::InlineTable& table);
  Result<PlanPtr> TimeTravel(const fleuve::pb::TimeTravel& travel);
  /// Runs an expression that refers to no column.
  Result<types::Value> ValueOfConstant(const ExprPtr& expr);
  Result<PlanPtr> Sample(const sc::Sample& sample);
  Result<PlanPtr> Limit(const PlanPtr& input, PlanKind kind, std::int64_t count);
  Result<PlanPtr> LimitByExpression(const fleuve::pb::LimitExpression& limit);
  Result<PlanPtr> Watermark(const sc::WithWatermark& watermark);
  Result<PlanPtr> WatermarkBy(const fleuve::pb::WatermarkClause& clause);
  Result<PlanPtr> WatermarkOver(PlanPtr input, const ExprPtr& column, const std::vector<std::string>& name,
                                std::int64_t delay_micros);
  Result<PlanPtr> Metrics(const sc::CollectMetrics& metrics);
  Result<PlanPtr> Pipe(const fleuve::pb::PipeOperator& pipe);
  Result<PlanPtr> Parse(const sc::Parse& parse);

  // Select lists (analyzer_project.cc).
  Result<PlanPtr> Project(const sc::Project& project);
  Result<std::vector<SelectItem>> SelectItems(const google::protobuf::RepeatedPtrField<sc::Expression>& expressions,
                                              const PlanPtr& input, bool lateral_aliases);
  Result<void> AppendItem(const sc::Expression& expression, const Scope& scope, const PlanPtr& input,
                          std::vector<SelectItem>& items);
  Result<PlanPtr> MakeSelect(PlanPtr input, std::vector<SelectItem> items);
  Result<PlanPtr> AddGenerator(PlanPtr input, std::vector<SelectItem>& items);
  /// Moves window functions out of the items into a kWindow node.
  Result<PlanPtr> ExtractWindows(PlanPtr input, std::vector<ExprPtr>& exprs);
  Result<PlanPtr> WithColumns(const sc::WithColumns& with_columns);
  Result<PlanPtr> WithColumnsRenamed(const sc::WithColumnsRenamed& renamed);
  Result<PlanPtr> Drop(const sc::Drop& drop);
  Result<PlanPtr> ToDf(const sc::ToDF& to_df);
  Result<PlanPtr> ToSchema(const sc::ToSchema& to_schema);
  Result<ExprPtr> ReconcileColumn(const ExprPtr& expr, const types::StructField& target,
                                  std::vector<std::string>& path);
  Result<PlanPtr> LateralView(const fleuve::pb::LateralView& view);
  Result<std::vector<Attribute>> ExpandStar(const std::string& target, const Scope& scope, const PlanPtr& input,
                                            std::optional<std::int64_t> plan_id, std::vector<SelectItem>* struct_items);
  Attribute OutputAttribute(const SelectItem& item);
  ExprPtr AttributeExpr(const Attribute& attribute);
  /// A projection to exactly these attributes of `plan`.
  PlanPtr Restore(const PlanPtr& plan, const std::vector<Attribute>& output);
  /// `plan` without its hidden columns.
  PlanPtr WithoutHidden(const PlanPtr& plan);

  // Filters, sorts, distinct (analyzer_filter.cc).
  Result<PlanPtr> Filter(const PlanPtr& input, const sc::Expression& condition, bool is_having);
  Result<PlanPtr> SortBy(PlanPtr input, const std::vector<const sc::Expression_SortOrder*>& order);
  Result<PlanPtr> Sort(const sc::Sort& sort);
  Result<PlanPtr> Having(const fleuve::pb::Having& having);
  Result<PlanPtr> Deduplicate(const sc::Deduplicate& deduplicate);
  Result<PlanPtr> DistinctRows(PlanPtr input);
  Result<PlanPtr> RepartitionByExpression(const sc::RepartitionByExpression& repartition);
  /// Hints tell how to run, never what comes out: only REPARTITION and COALESCE leave something in the plan.
  Result<PlanPtr> Hint(const sc::Hint& hint);
  /// Analyzes expressions over `input`, bringing up columns and aggregates from below where needed; `input` becomes the
  /// plan that has them.
  Result<std::vector<ExprPtr>> ResolveOver(PlanPtr& input, const std::vector<const sc::Expression*>& expressions);
  Result<PlanPtr> Expose(const PlanPtr& plan, const std::vector<Attribute>& needed, const LogicalPlan* from,
                         const PlanPtr& to);

  // Aggregates (analyzer_aggregate.cc, analyzer_pivot.cc).
  Result<PlanPtr> Aggregate(const sc::Aggregate& aggregate);
  /// Groups by every column: what SELECT DISTINCT is on a stream.
  Result<PlanPtr> AggregateAllColumns(PlanPtr input);
  Result<PlanPtr> SqlAggregate(const fleuve::pb::SqlAggregate& aggregate);
  struct AggregateParts {
    std::vector<ExprPtr> grouping;
    std::vector<std::vector<int>> sets;  ///< indexes into `grouping`; empty = plain
    bool has_sets = false;
    /// Where the items refer to grouping_id().
    std::optional<Attribute> grouping_id;
  };
  Result<PlanPtr> MakeAggregate(PlanPtr input, const AggregateParts& parts, std::vector<SelectItem> items);
  PlanPtr Expand(const PlanPtr& input, const AggregateParts& parts, std::vector<Attribute>& grouping_attributes,
                 std::vector<Attribute>& extra_keys);
  struct AggregateSite;
  struct PivotColumn {
    ExprPtr value;
    std::string name;
  };
  Result<ExprPtr> OverAggregate(const ExprPtr& expr, AggregateSite& site);
  Result<PlanPtr> SqlAggregateOver(PlanPtr input, const google::protobuf::RepeatedPtrField<sc::Expression>& select,
                                   const fleuve::pb::SqlAggregate* aggregate);
  Result<PlanPtr> Pivot(const sc::Aggregate& aggregate, PlanPtr input);
  /// The distinct values of an expression in order, at most `limit` and one more.
  Result<std::vector<types::Value>> DistinctValues(const PlanPtr& input, const ExprPtr& column, std::int64_t limit);
  Result<PlanPtr> SqlPivot(const fleuve::pb::SqlPivot& pivot);
  Result<PlanPtr> MakePivot(const PlanPtr& input, std::vector<SelectItem> grouping, const ExprPtr& column,
                            const std::vector<PivotColumn>& values, const std::vector<SelectItem>& aggregates);
  struct UnpivotRow {
    std::vector<ExprPtr> values;
    std::string name;
  };
  Result<PlanPtr> MakeUnpivot(const PlanPtr& input, const std::vector<SelectItem>& ids, std::vector<UnpivotRow> rows,
                              const std::string& variable_name, const std::vector<std::string>& value_names,
                              bool include_nulls);
  Result<PlanPtr> Unpivot(const sc::Unpivot& unpivot);
  Result<PlanPtr> SqlUnpivot(const fleuve::pb::SqlUnpivot& unpivot);

  // Joins and sets (analyzer_join.cc, analyzer_set.cc).
  Result<PlanPtr> Join(const sc::Join& join, bool natural);
  Result<PlanPtr> LateralJoin(const sc::LateralJoin& join);
  Result<PlanPtr> JoinOver(PlanPtr left, PlanPtr right, sc::Join_JoinType type, const sc::Expression* condition,
                           std::vector<std::string> using_columns, bool natural, bool lateral);
  Result<PlanPtr> SetOperation(const sc::SetOperation& set);
  Result<PlanPtr> Union(std::vector<PlanPtr> inputs);
  /// Structs of columns with one name, their fields matched by name (unionByName).
  Result<void> MatchFields(PlanPtr& left, PlanPtr& right, bool allow_missing);
  Result<ExprPtr> WithFields(const ExprPtr& expr, const types::DataType& target);
  Result<std::vector<PlanPtr>> WidenInputs(std::vector<PlanPtr> inputs, const std::string& operation);
  Result<PlanPtr> CastColumns(const PlanPtr& plan, const std::vector<types::DataType>& types);

  // Missing values and statistics (analyzer_na.cc, analyzer_statistics.cc).
  Result<std::vector<std::size_t>> ColumnPositions(const PlanPtr& input,
                                                   const google::protobuf::RepeatedPtrField<std::string>& names);
  Result<PlanPtr> FillNa(const sc::NAFill& fill);
  Result<PlanPtr> DropNa(const sc::NADrop& drop);
  Result<PlanPtr> Replace(const sc::NAReplace& replace);
  Result<PlanPtr> Describe(const PlanPtr& input, std::vector<std::string> columns, std::vector<std::string> statistics,
                           bool all_columns);
  Result<PlanPtr> Covariance(const PlanPtr& input, const std::string& a, const std::string& b, bool correlation);
  Result<PlanPtr> ApproxQuantile(const sc::StatApproxQuantile& quantile);
  Result<PlanPtr> SampleBy(const sc::StatSampleBy& sample);
  Result<PlanPtr> Crosstab(const sc::StatCrosstab& crosstab);
  Result<PlanPtr> Transpose(const sc::Transpose& transpose);
  Result<PlanPtr> FreqItems(const sc::StatFreqItems& items);

  /// Aggregates take no values that change from one evaluation to the next.
  static Result<void> CheckAggregated(const ExprPtr& argument, bool in_window, const std::string& function);

  // Functions of the user in other languages (analyzer_external.cc).
  Result<std::shared_ptr<const ExternalContext>> ExternalSettings();
  Result<ExprPtr> ExternalFunctionCall(const sc::CommonInlineUserDefinedFunction& proto, const Scope& scope);
  Result<ExprPtr> ExternalFunctionCall(std::shared_ptr<const ExternalFunction> function,
                                       const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                                       bool is_distinct, const Scope& scope);
  struct ExternalParts;
  /// A kExternal node whose only call is `function`.
  Result<PlanPtr> ExternalPlan(ExternalParts parts, const PlanPtr& child,
                               const std::shared_ptr<const ExternalFunction>& function);
  Result<PlanPtr> MapPartitions(const sc::MapPartitions& map);
  Result<PlanPtr> GroupMap(const sc::GroupMap& map);
  Result<PlanPtr> GroupState(const sc::Relation& relation,
                             const google::protobuf::RepeatedPtrField<sc::Expression>& grouping,
                             std::shared_ptr<const ExternalFunction> function, const std::string& output_mode,
                             const std::string& timeout, std::optional<types::DataType> state_type);
  Result<PlanPtr> ApplyWithState(const sc::ApplyInPandasWithState& apply);
  Result<PlanPtr> CoGroupMap(const sc::CoGroupMap& map);
  /// The input's visible columns and, hidden, one column per grouping expression.
  Result<PlanPtr> GroupKeys(const PlanPtr& input, const google::protobuf::RepeatedPtrField<sc::Expression>& grouping,
                            std::vector<Attribute>& keys);
  Result<PlanPtr> ExternalTable(const sc::CommonInlineUserDefinedTableFunction& proto);
  Result<PlanPtr> ExternalTable(std::shared_ptr<const ExternalFunction> function,
                                const google::protobuf::RepeatedPtrField<sc::Expression>& arguments);
  struct TableArgument;
  /// nullopt where the expression is no TABLE argument.
  Result<std::optional<TableArgument>> TableArgumentOf(const sc::Expression& expression);

  // Expressions (analyzer_expression.cc, analyzer_function.cc, analyzer_name.cc, analyzer_subquery.cc).
  Result<ExprPtr> ExpressionBody(const sc::Expression& expression, const Scope& scope);
  Result<ExprPtr> ExtensionExpression(const sc::Expression& expression, const Scope& scope);
  Result<ExprPtr> Name(const std::vector<std::string>& parts, const Scope& scope);
  /// nullopt where the name stands for nothing in the tiers of this scope alone.
  Result<std::optional<ExprPtr>> NameInTiers(const std::vector<std::string>& parts, const Scope& scope);
  Result<std::optional<ExprPtr>> NameInColumns(const std::vector<std::string>& parts,
                                               const std::vector<Attribute>& columns);
  Result<ExprPtr> DataFrameColumn(const std::vector<std::string>& parts, std::int64_t plan_id, const Scope& scope);
  Result<ExprPtr> ExtractValue(const ExprPtr& child, const ExprPtr& extraction);
  Result<ExprPtr> ExtractField(const ExprPtr& child, const std::string& name);
  Result<ExprPtr> UpdateFields(const sc::Expression_UpdateFields& update, const Scope& scope);
  Result<ExprPtr> Cast(const sc::Expression_Cast& cast, const Scope& scope);
  Result<ExprPtr> Window(const sc::Expression_Window& window, const Scope& scope);
  Result<ExprPtr> Subquery(SubqueryKind kind, const sc::Relation& relation, std::vector<ExprPtr> values,
                           const Scope& scope);
  Result<ExprPtr> SubqueryOf(SubqueryKind kind, PlanPtr plan, std::vector<ExprPtr> values);
  /// Spark's IN over a subquery is true or false everywhere but where it (or its negation) is a whole condition of a
  /// filter: there alone NULLs count as unknown.
  Result<ExprPtr> WithExistence(const ExprPtr& expr, bool is_condition);
  Result<SortKey> Order(const sc::Expression_SortOrder& order, const Scope& scope);
  struct FunctionOptions {
    bool distinct = false;
    bool ignore_nulls = false;
    const sc::Expression* filter = nullptr;
    const google::protobuf::RepeatedPtrField<sc::Expression_SortOrder>* within_group = nullptr;
  };
  /// INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX where a call has a clause that only aggregate functions take.
  static Result<void> CheckNoClauses(const std::string& name, const FunctionOptions& options);
  Result<ExprPtr> Function(const std::string& name, const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                           const FunctionOptions& options, const Scope& scope,
                           std::shared_ptr<const QueryContext> context);
  Result<FunctionCall> MakeFunctionCall(const std::string& name,
                                        const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                                        const FunctionOptions& options, const Scope& scope,
                                        std::shared_ptr<const QueryContext> context);
  Result<std::optional<ExprPtr>> UserFunction(const std::vector<std::string>& parts,
                                              const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                                              const Scope& scope);
  Result<std::optional<ExprPtr>> SpecialFunction(const std::string& name,
                                                 const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                                                 const Scope& scope);
  /// A call of a function of Spark's list over typed arguments.
  Result<ExprPtr> Call(const std::string& name, std::vector<ExprPtr> arguments);
  Result<ExprPtr> AsBoolean(const ExprPtr& expr, const char* what);
  std::shared_ptr<const QueryContext> ContextOf(const sc::Expression& expression) const;
  Result<std::shared_ptr<const sc::Expression>> ParsedExpression(const std::string& text);
  /// A value known without rows. INVALID_... otherwise is the caller's: nullopt.
  Result<std::optional<types::Value>> ConstantValue(const ExprPtr& expr);
  std::optional<std::string> ConstantText(const ExprPtr& expr);

  void Remember(std::int64_t plan_id, const PlanPtr& plan);
  std::optional<std::string> Conf(const std::string& key) const;

  Resolver& resolver_;
  AnalysisConfig config_;
  int depth_ = 0;
  std::string sql_text_;
  std::vector<CommonTable> tables_;
  /// References of enclosing WithRelations by plan id, as messages: analyzed at each use.
  std::unordered_map<std::int64_t, const sc::Relation*> references_;
  /// What a client's plan id stands for: one entry for each place of the request where the plan stands.
  struct KnownPlan {
    PlanPtr plan;
    /// Levels below the root of the request.
    int depth = 0;
  };
  std::unordered_map<std::int64_t, std::vector<KnownPlan>> plans_by_id_;
  std::unordered_map<std::int64_t, ExprPtr> attribute_exprs_;
  /// Scopes of the queries around the relation under analysis (subqueries, lateral joins), innermost last.
  std::vector<const Scope*> outer_scopes_;
  /// Parsed texts stay alive while the analysis runs.
  std::vector<std::shared_ptr<const void>> kept_;
  int view_depth_ = 0;
  std::shared_ptr<const ExternalContext> external_;
  /// True while the next call is the function of a window.
  bool is_window_function_ = false;
};

}  // namespace fleuve::plan
