#pragma once

/// \file
/// Typed expressions: every node has a type, every cast is explicit, every name is resolved.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::plan {

/// Names one column through a whole plan; unique in the process. Two instances of one table in a plan differ in it.
using AttributeId = StrongInt<struct AttributeIdTag>;
/// A fresh id. Threads: any.
AttributeId NewAttributeId();

struct Expr;
using ExprPtr = std::shared_ptr<const Expr>;
struct LogicalPlan;
struct ExternalFunction;
using PlanPtr = std::shared_ptr<const LogicalPlan>;

/// A column that a plan node gives.
struct Attribute {
  AttributeId id;
  std::string name;
  types::DataType type;
  bool nullable = true;
  Json metadata;
  /// Alias or `catalog, database, table`, outermost first; matched from the end.
  std::vector<std::string> qualifier;
  /// Not part of `*`: `_metadata`, columns kept for a sort or a USING join.
  bool hidden = false;
};

enum class ExprKind {
  kLiteral,         ///< `value`; `function` names what it stands for where it changes from batch to batch of a stream:
                    ///< current_timestamp, current_date, localtimestamp, unix_timestamp
  kAttribute,       ///< `attribute`: a column of a child plan (or of the outer query: `is_outer`)
  kCall,            ///< `function` over children: scalar function or operator (see function names below)
  kCast,            ///< children[0] to `type`, rule in `cast_mode`; `zone` for those that need one
  kCase,            ///< children: when, then, when, then, ..., [else]
  kGetField,        ///< field number `ordinal` of the struct children[0]
  kLambda,          ///< children[0] the body; `parameters`
  kLambdaVariable,  ///< `attribute` is one of the enclosing lambda's parameters
  kAggregate,       ///< aggregate `function`; only inside an Aggregate node's `aggregates` or a kWindow
  kWindow,          ///< children[0] a kAggregate or kCall of a window function, over `window`
  kSubquery,        ///< `subquery`, kind in `subquery_kind`
};

/// What a failing cast does.
enum class CastMode {
  kAnsi,    ///< error: CAST_INVALID_INPUT, CAST_OVERFLOW, ...
  kTry,     ///< NULL
  kLegacy,  ///< Spark without ANSI: NULL, or wraps around for integers
};

enum class SubqueryKind { kScalar, kExists, kIn };

struct SortKey {
  ExprPtr expr;
  bool ascending = true;
  bool nulls_first = true;
};

/// Bounds of a window frame, in rows or in values of the only sort key.
struct WindowFrame {
  enum class Unit { kRows, kRange };
  enum class BoundKind { kUnboundedPreceding, kUnboundedFollowing, kCurrentRow, kOffset };
  struct Bound {
    BoundKind kind = BoundKind::kUnboundedPreceding;
    /// kOffset: a literal, negative = preceding.
    ExprPtr offset;
  };
  Unit unit = Unit::kRange;
  Bound lower;
  Bound upper{BoundKind::kCurrentRow, nullptr};
};

struct WindowSpec {
  std::vector<ExprPtr> partition_by;
  std::vector<SortKey> order_by;
  WindowFrame frame;
};

/// One node. Built through the functions below, never changed afterwards. Which members mean something is told by
/// `kind`; the first block is valid for all.
///
/// Function names (`function`) are names of the engine's functions. Operators have names of their own, which the engine
/// turns into its operators: and or not eq ne lt le gt ge eqnullsafe isnull isnotnull isnan in if coalesce; all
/// operands of a comparison have one type. Everything else is `spark_*` (ours) or `duck_*` (a DuckDB built-in proven
/// equal: `duck_lower` runs DuckDB's `lower`). Constant parameters that a function needs (zone, ANSI flag, format) are
/// literal children at the end, as its builder lays down.
struct Expr {
  Expr() = default;
  Expr(const Expr&) = default;
  Expr& operator=(const Expr&) = default;
  /// Frees deep trees without recursion.
  ~Expr();

  ExprKind kind = ExprKind::kLiteral;
  types::DataType type;
  bool nullable = true;
  /// True when evaluating this node on some row may raise an error (its children included).
  bool can_fail = false;
  /// False for rand(), uuid(), ... (children included).
  bool deterministic = true;
  std::vector<ExprPtr> children;
  /// The expression's text as Spark names an output column of it: `(a + 1)`, `count(1)`, `CAST(a AS INT)`.
  std::string display;
  /// Where it stands in the SQL text or the client's program; null where unknown.
  std::shared_ptr<const QueryContext> context;

  types::Value value;
  Attribute attribute;
  bool is_outer = false;
  std::string function;
  CastMode cast_mode = CastMode::kAnsi;
  std::string zone;
  bool has_else = false;
  int ordinal = 0;
  std::vector<Attribute> parameters;
  bool distinct = false;          ///< kAggregate
  bool ignore_nulls = false;      ///< kAggregate, window functions
  ExprPtr filter;                 ///< kAggregate: FILTER (WHERE ...), or null
  std::vector<SortKey> order_by;  ///< kAggregate: order of the rows it sees
  WindowSpec window;
  PlanPtr subquery;
  SubqueryKind subquery_kind = SubqueryKind::kScalar;
  /// kCall, kAggregate: a function of the user in another language (plan/external.h; `function` is `external`);
  /// `argument_names` are those of its children, empty where all are positional.
  std::shared_ptr<const ExternalFunction> external;
  std::vector<std::string> argument_names;
};

/// The display text is Spark's for a literal in a column name; timestamps show in UTC.
ExprPtr MakeLiteral(types::Value value, types::DataType type);
/// A literal as SQL text: `'a'`, `1L`, `DATE '2024-01-05'`, `ARRAY(1, 2)`.
std::string LiteralSql(const types::Value& value, const types::DataType& type, const std::string& zone);
/// A literal as it stands in a column name: as `LiteralSql` but strings and numbers bare and NULL without a type.
std::string LiteralDisplay(const types::Value& value, const types::DataType& type, const std::string& zone);
ExprPtr MakeNull(types::DataType type);
ExprPtr MakeAttribute(const Attribute& attribute);
/// can_fail and deterministic are those of the children or worse.
ExprPtr MakeCall(std::string function, std::vector<ExprPtr> children, types::DataType type, bool nullable,
                 bool can_fail = false, bool deterministic = true);
ExprPtr MakeCase(std::vector<ExprPtr> children, bool has_else, types::DataType type);
ExprPtr MakeAnd(ExprPtr a, ExprPtr b);
ExprPtr MakeGetField(ExprPtr child, int ordinal);
/// A copy with another display text.
ExprPtr WithDisplay(const ExprPtr& expr, std::string display);
/// A copy with other children; can_fail and deterministic are recomputed upwards only (never cleared).
ExprPtr WithChildren(const ExprPtr& expr, std::vector<ExprPtr> children);
/// Every expression directly below: children, then filter, sort keys, window parts.
std::vector<ExprPtr> OperandsOf(const Expr& expr);
/// A copy with other operands, in the order of `OperandsOf`.
ExprPtr WithOperands(const ExprPtr& expr, const std::vector<ExprPtr>& operands);
/// True where a node for which `test` holds is in the tree (subqueries left out).
bool AnyExpr(const ExprPtr& expr, const std::function<bool(const Expr&)>& test);

/// True when both are the same expression over the same attributes (display and context are left out).
bool SameExpr(const ExprPtr& a, const ExprPtr& b);
/// Calls `visit` on every node, parents first, without recursion; not into subqueries.
void VisitExpr(const ExprPtr& expr, const std::function<void(const Expr&)>& visit);
/// Rebuilds bottom up; `rewrite` gives a replacement or null to keep the (rebuilt) node.
ExprPtr RewriteExpr(const ExprPtr& expr, const std::function<ExprPtr(const ExprPtr&)>& rewrite);

}  // namespace fleuve::plan
