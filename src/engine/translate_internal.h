#pragma once

/// \file
/// Typed plan to DuckDB's syntax tree. No SQL text: nodes are built, columns have positional names (`t3.c0`).

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "duckdb/parser/parsed_expression.hpp"
#include "duckdb/parser/query_node/select_node.hpp"
#include "duckdb/parser/result_modifier.hpp"
#include "duckdb/parser/statement/select_statement.hpp"
#include "duckdb/parser/tableref.hpp"
#include "engine/duckdb_pch.h"
#include "engine/run_state_internal.h"
#include "plan/logical_plan.h"

namespace fleuve::engine {

using ParsedPtr = duckdb::unique_ptr<duckdb::ParsedExpression>;
using TableRefPtr = duckdb::unique_ptr<duckdb::TableRef>;

/// What a run's translation depends on beside the plan.
struct TranslateOptions {
  /// True when the instance runs one thread: rows then reach every operator in order.
  bool single_thread = false;
};

/// Translates one plan. Raises Errors (RaiseError). Used once, by one thread.
class Translator {
 public:
  Translator(RunState& state, const TranslateOptions& options) : state_(state), options_(options) {}

  /// A SELECT of `columns` (attributes of the plan's output), named c0, c1, ...
  duckdb::unique_ptr<duckdb::SelectStatement> Statement(const plan::PlanPtr& plan,
                                                        const std::vector<plan::Attribute>& columns);
  /// The rows of the kRows node `leaf` (one without batches) are those of `rows`, which outlives the run.
  void SetCollection(const plan::LogicalPlan* leaf, duckdb::ColumnDataCollection* rows) {
    collection_leaf_ = leaf;
    collection_ = rows;
  }

 private:
  struct Column {
    std::string table;  ///< empty: a name without table (lambda inputs)
    std::string name;
  };
  using Names = std::unordered_map<std::int64_t, Column>;
  /// A FROM clause with a pending WHERE, and where the attributes of the translated node are found in it.
  struct Block {
    TableRefPtr from;
    ParsedPtr where;
    Names names;
  };

  // ---- plans (translate_plan.cc) ----
  Block Plan(const plan::PlanPtr& plan);
  Block OneRow();
  Block Collection(const plan::LogicalPlan& node);
  Block LeafFunction(const plan::PlanPtr& plan, const std::string& function);
  Block Project(const plan::LogicalPlan& node);
  Block Filter(const plan::LogicalPlan& node);
  Block Join(const plan::LogicalPlan& node);
  Block Union(const plan::LogicalPlan& node);
  Block SetOperation(const plan::LogicalPlan& node, bool except);
  Block Distinct(const plan::LogicalPlan& node);
  Block Sort(const plan::LogicalPlan& node);
  Block Limit(const plan::LogicalPlan& node);
  Block Tail(const plan::LogicalPlan& node);
  Block Sample(const plan::LogicalPlan& node);
  Block Window(const plan::LogicalPlan& node);
  Block Generate(const plan::LogicalPlan& node);
  Block Expand(const plan::LogicalPlan& node);
  Block Metrics(const plan::LogicalPlan& node, const plan::PlanPtr& plan);
  Block External(const plan::PlanPtr& plan);       // translate_external.cc
  bool IsWideChain(const plan::LogicalPlan& top);  // translate_chain.cc
  Block Chain(const plan::LogicalPlan& top);       // translate_chain.cc
  Block Aggregate(const plan::LogicalPlan& node);  // translate_aggregate.cc

  /// SELECT list FROM block WHERE ...; the block is used up.
  static duckdb::unique_ptr<duckdb::SelectNode> Select(Block& block);
  /// The block's attributes as a SELECT's list, in the given order (each once); `names` gets their new places.
  void AddColumns(duckdb::SelectNode& select, const Block& block, const std::vector<plan::Attribute>& attributes,
                  const std::string& alias, Names* names);
  /// Ends a SELECT: it becomes a table named `alias`.
  static TableRefPtr AsTable(duckdb::unique_ptr<duckdb::QueryNode> node, const std::string& alias);
  /// The block as a plain table without WHERE, holding `attributes`.
  Block Close(Block block, const std::vector<plan::Attribute>& attributes);
  /// The same with one more column: the row's index from 0, in order. Everything above sees rows in order, from one
  /// thread. `row` gets its place.
  Block WithRowNumber(Block block, const std::vector<plan::Attribute>& attributes, Column* row);
  std::string NewAlias() { return "t" + std::to_string(next_alias_++); }

  // ---- expressions (translate_expr.cc) ----
  ParsedPtr Expr(const plan::ExprPtr& expr);
  /// A condition of a WHERE: NULL counts as FALSE.
  ParsedPtr Conjunct(const plan::ExprPtr& expr);
  static ParsedPtr OrElse(ParsedPtr condition, bool value);
  ParsedPtr CallExpr(const plan::ExprPtr& expr);
  ParsedPtr CastExpr(const plan::ExprPtr& expr);
  ParsedPtr OwnCall(const plan::ExprPtr& expr);
  ParsedPtr BuiltIn(const plan::ExprPtr& expr, std::string name);
  ParsedPtr Subquery(const plan::ExprPtr& expr);
  ParsedPtr AggregateCall(const plan::ExprPtr& expr, const Column* row);  // translate_aggregate.cc
  ParsedPtr WindowCall(const plan::ExprPtr& expr, const Column* row);     // translate_window.cc
  duckdb::vector<duckdb::OrderByNode> Orders(const std::vector<plan::SortKey>& keys);
  static ParsedPtr Ref(const Column& column);
  static ParsedPtr Typed(ParsedPtr expr, const types::DataType& type);
  ParsedPtr CallNumber(const plan::ExprPtr& expr, std::vector<ParsedLambda> lambdas,
                       const std::vector<duckdb::LogicalType>& extra_arguments);
  const Column* FindColumn(plan::AttributeId id) const;

  /// Attributes in sight while expressions are translated; pushes and pops a level.
  class Scope {
   public:
    Scope(Translator& translator, const Names& names) : translator_(translator) {
      translator_.scopes_.push_back(&names);
    }
    ~Scope() { translator_.scopes_.pop_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Translator& translator_;
  };

  RunState& state_;
  TranslateOptions options_;
  int next_alias_ = 0;
  std::vector<const Names*> scopes_;
  /// Expressions that are columns already (results of aggregates, grouping keys) while the SELECT above is translated.
  std::vector<std::pair<plan::ExprPtr, Column>> replacements_;
  /// While a chain of projections is translated: expressions that are steps of it already, by their address.
  std::unordered_map<const plan::Expr*, Column> steps_;
  /// Where calls that depend on the row's position find it; null where no such call is expected.
  const Column* row_column_ = nullptr;
  /// While an expression over windows is translated: where the row's index is found.
  const Column* window_row_ = nullptr;
  const plan::LogicalPlan* collection_leaf_ = nullptr;
  duckdb::ColumnDataCollection* collection_ = nullptr;
};

// ---- small builders ----
ParsedPtr Constant(duckdb::Value value);
ParsedPtr Function(const std::string& name, std::vector<ParsedPtr> children);
template <typename... Children>
ParsedPtr FunctionOf(const std::string& name, Children... children) {
  std::vector<ParsedPtr> list;
  (list.push_back(std::move(children)), ...);
  return Function(name, std::move(list));
}
ParsedPtr Compare(duckdb::ExpressionType type, ParsedPtr a, ParsedPtr b);
ParsedPtr Operator(duckdb::ExpressionType type, ParsedPtr a);
ParsedPtr And(ParsedPtr a, ParsedPtr b);

/// True for functions whose value depends on the row's position (rand, monotonically_increasing_id, ...). Their calls
/// get the row's index (BIGINT, from 0) as a further last argument and see the rows in order, from one thread at a
/// time.
bool DependsOnPosition(const std::string& function);
/// True where the expression (its children included) holds such a call.
bool HasPositionCall(const plan::ExprPtr& expr);
/// True for aggregates whose result depends on the order of rows.
bool DependsOnOrder(const std::string& aggregate);

}  // namespace fleuve::engine
