#pragma once

/// \file
/// The typed plan: what every front end's program becomes, and what the engine runs.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/expr.h"
#include "plan/scan.h"

namespace fleuve::plan {

enum class PlanKind {
  kOneRow,       ///< one row without columns
  kRows,         ///< `rows`
  kRange,        ///< `range`: one BIGINT column
  kTable,        ///< `table`: a source not yet planned (becomes kFileScan or kRows before it runs)
  kFileScan,     ///< `scan`
  kStream,       ///< `stream`: a streaming leaf; replaced by what a batch holds
  kProject,      ///< `exprs`, one per output attribute
  kFilter,       ///< `condition`
  kAggregate,    ///< `grouping` then `aggregates` make the output, in this order; see `grouping_sets`
  kJoin,         ///< `join_type`, `condition` (may be null); output: left then right (semi, anti: left)
  kUnion,        ///< all children have the same column types; rows are kept (ALL)
  kIntersect,    ///< `all`
  kExcept,       ///< `all`
  kDistinct,     ///< over all columns, or over the `keys` only: the first row of each key; see `within_watermark`
  kSort,         ///< `order_by`
  kLimit,        ///< `count` rows from the start
  kOffset,       ///< without the first `count` rows
  kTail,         ///< the last `count` rows
  kSample,       ///< `sample`
  kWindow,       ///< child's output, then one column per `exprs` (kWindow expressions)
  kGenerate,     ///< child's columns, then what `generator` gives for each row; see `outer`
  kExpand,       ///< one row per entry of `projections` for each input row (grouping sets)
  kRepartition,  ///< keeps rows; order is free below it when `shuffle`
  kWatermark,    ///< event-time column and delay; keeps rows
  kMetrics,      ///< observe(): keeps rows and computes `exprs` (aggregates) beside, under `name`
  kExternal,     ///< `external` (plan/external.h): functions of the user over `exprs`, grouped by `grouping`
};

struct ExternalOperator;

enum class JoinType { kInner, kLeft, kRight, kFull, kLeftSemi, kLeftAnti, kCross };

struct RangeSpec {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
};

struct SampleSpec {
  double lower = 0;
  double upper = 1;
  bool with_replacement = false;
  std::int64_t seed = 0;
};

/// explode & co.: `function` is explode, posexplode, inline, stack, json_tuple, ...; each gives the node's last output
/// columns.
struct GeneratorSpec {
  std::string function;
  std::vector<ExprPtr> arguments;
  /// Keeps the row with NULLs where the generator gives none.
  bool outer = false;
};

/// One node. Immutable once built; shared between plans. Which members mean something is told by `kind`.
struct LogicalPlan {
  LogicalPlan() = default;
  LogicalPlan(const LogicalPlan&) = default;
  LogicalPlan& operator=(const LogicalPlan&) = default;
  /// Frees deep plans without recursion.
  ~LogicalPlan();

  PlanKind kind = PlanKind::kOneRow;
  std::vector<PlanPtr> children;
  std::vector<Attribute> output;
  bool is_streaming = false;

  std::shared_ptr<const RowScan> rows;
  RangeSpec range;
  std::shared_ptr<const TableSource> table;
  std::shared_ptr<const FileScan> scan;
  std::shared_ptr<const StreamRelation> stream;
  std::vector<ExprPtr> exprs;
  ExprPtr condition;
  std::vector<ExprPtr> grouping;
  std::vector<ExprPtr> aggregates;
  JoinType join_type = JoinType::kInner;
  /// kJoin: the right child refers to columns of the left one (`is_outer` attributes).
  bool lateral = false;
  bool all = false;
  std::vector<AttributeId> keys;
  std::vector<SortKey> order_by;
  std::int64_t count = 0;
  SampleSpec sample;
  GeneratorSpec generator;
  std::vector<std::vector<ExprPtr>> projections;
  bool shuffle = false;
  std::string name;
  AttributeId event_time;
  std::int64_t delay_micros = 0;
  /// kDistinct on a stream: a key is kept until the watermark passes the first row's event time and the delay.
  bool within_watermark = false;
  std::shared_ptr<const ExternalOperator> external;
};

/// The output attributes that are not hidden, as a schema with Spark's names.
types::Schema SchemaOf(const LogicalPlan& plan);
/// An attribute as a schema's field.
types::StructField FieldOf(const Attribute& attribute);
/// One fresh attribute per field.
std::vector<Attribute> AttributesOf(const types::Schema& schema, const std::vector<std::string>& qualifier = {});
PlanPtr MakeProject(PlanPtr child, std::vector<ExprPtr> exprs, std::vector<Attribute> output);
PlanPtr MakeFilter(PlanPtr child, ExprPtr condition);
/// Rebuilds bottom up without recursion overflow; `rewrite` gives a replacement or null to keep the (rebuilt) node.
PlanPtr RewritePlan(const PlanPtr& plan, const std::function<PlanPtr(const PlanPtr&)>& rewrite);
/// Parents first, children left to right; a node that stands twice is visited twice. Not into subqueries.
void VisitPlan(const PlanPtr& plan, const std::function<void(const LogicalPlan&)>& visit);
/// Every expression of the node itself.
std::vector<ExprPtr> ExpressionsOf(const LogicalPlan& plan);
/// A copy with `rewrite` applied to each expression of the node itself (null keeps it).
PlanPtr MapExpressions(const PlanPtr& plan, const std::function<ExprPtr(const ExprPtr&)>& rewrite);
/// Every streaming leaf, depth first, left to right: the order in which Spark numbers sources.
std::vector<const LogicalPlan*> StreamingLeaves(const PlanPtr& plan);

}  // namespace fleuve::plan
