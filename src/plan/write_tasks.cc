#include "plan/write_tasks.h"

#include <algorithm>

#include "plan/call_function.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::Value;

/// A `range` in parts, as long as its column tells the part of each row.
struct RangeParts {
  AttributeId column;
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t rows = 0;
  std::int64_t parts = 1;
};

/// A plan and the tasks that its rows are in.
struct Spread {
  PlanPtr plan;  ///< where `tasks` is above 1, its last output column is the task
  std::int64_t tasks = 1;
  /// All rows are known to be in one task, which Spark's unions look at.
  bool single = false;
  std::optional<RangeParts> range;
};

Attribute TaskColumn() {
  Attribute column;
  column.id = NewAttributeId();
  column.name = "task";
  column.type = DataType::Long();
  column.nullable = false;
  return column;
}

ExprPtr Bigint(std::int64_t value) { return MakeLiteral(Value(value), DataType::Long()); }

Spread One(PlanPtr plan, bool single) { return Spread{std::move(plan), 1, single, std::nullopt}; }
Spread Many(PlanPtr plan, std::int64_t tasks) { return Spread{std::move(plan), tasks, false, std::nullopt}; }

class Spreader {
 public:
  explicit Spreader(const AnalysisConfig& config) : config_(config) {}

  Result<Spread> Visit(const PlanPtr& plan) {
    switch (plan->kind) {
      case PlanKind::kRange:
        return Range(plan);
      case PlanKind::kRepartition:
        return Repartition(plan);
      case PlanKind::kUnion:
        return Union(plan);
      case PlanKind::kJoin: {
        // The other side is sent to every task.
        const bool keeps = plan->join_type == JoinType::kInner || plan->join_type == JoinType::kCross ||
                           plan->join_type == JoinType::kLeft || plan->join_type == JoinType::kLeftSemi ||
                           plan->join_type == JoinType::kLeftAnti;
        return keeps && !plan->lateral ? Above(plan) : One(plan, false);
      }
      case PlanKind::kProject:
      case PlanKind::kFilter:
      case PlanKind::kSample:
      case PlanKind::kWatermark:
      case PlanKind::kMetrics:
      case PlanKind::kGenerate:
        return Above(plan);
      case PlanKind::kSort:
        return plan->all ? Above(plan) : Regrouped(plan);
      case PlanKind::kDistinct:
      case PlanKind::kAggregate:
        return Regrouped(plan);
      case PlanKind::kLimit:
      case PlanKind::kOffset:
      case PlanKind::kTail:
        return One(plan, true);
      default:
        return One(plan, false);
    }
  }

 private:
  /// A node that keeps each row of its first child in its task.
  Result<Spread> Above(const PlanPtr& plan) {
    FLEUVE_ASSIGN(Spread child, Visit(plan->children.at(0)));
    if (child.tasks <= 1) {
      return One(plan, child.single && plan->kind != PlanKind::kJoin);
    }
    const PlanPtr& input = plan->children[0];
    auto node = std::make_shared<LogicalPlan>(*plan);
    const Attribute task = child.plan->output.back();
    node->children[0] = child.plan;
    child.plan = node;
    if (plan->kind == PlanKind::kProject) {
      node->exprs.push_back(MakeAttribute(task));
      node->output.push_back(task);
      return child;
    }
    // What a generator or another side gives stands behind the columns of the child.
    const bool adds = plan->kind == PlanKind::kGenerate || plan->kind == PlanKind::kJoin;
    const auto at = adds ? std::min(input->output.size(), node->output.size()) : node->output.size();
    node->output.insert(node->output.begin() + static_cast<std::ptrdiff_t>(at), task);
    if (at + 1 < node->output.size()) {
      std::vector<Attribute> output = plan->output;
      output.push_back(task);
      child.plan = Select(std::move(node), output);
    }
    return child;
  }

  /// A node that Spark needs no exchange for where its rows come in the order of a range.
  Result<Spread> Regrouped(const PlanPtr& plan) {
    FLEUVE_ASSIGN(const Spread child, Visit(plan->children.at(0)));
    const bool whole = plan->kind == PlanKind::kAggregate && plan->grouping.empty();
    if (child.tasks <= 1 || !child.range.has_value()) {
      return One(plan, whole || child.single);
    }
    const auto is_range = [&](const ExprPtr& expr) {
      return expr->kind == ExprKind::kAttribute && expr->attribute.id == child.range->column;
    };
    const bool has = std::any_of(plan->output.begin(), plan->output.end(),
                                 [&](const Attribute& column) { return column.id == child.range->column; });
    bool fits = has;
    if (plan->kind == PlanKind::kSort) {
      fits = fits && !plan->order_by.empty() && is_range(plan->order_by[0].expr) &&
             plan->order_by[0].ascending == (child.range->step > 0);
    } else if (plan->kind == PlanKind::kAggregate) {
      fits = fits && std::any_of(plan->grouping.begin(), plan->grouping.end(), is_range);
    } else {
      fits = fits && (plan->keys.empty() ||
                      std::find(plan->keys.begin(), plan->keys.end(), child.range->column) != plan->keys.end());
    }
    if (!fits) {
      return One(plan, false);
    }
    return OfRange(plan, *child.range);
  }

  static PlanPtr Select(PlanPtr plan, const std::vector<Attribute>& columns) {
    std::vector<ExprPtr> exprs;
    for (const Attribute& column : columns) {
      exprs.push_back(MakeAttribute(column));
    }
    return MakeProject(std::move(plan), std::move(exprs), columns);
  }

  /// `columns` of `plan`, and `task` as one more.
  static PlanPtr With(const PlanPtr& plan, ExprPtr task, const std::vector<Attribute>& columns) {
    std::vector<ExprPtr> exprs;
    std::vector<Attribute> output = columns;
    for (const Attribute& column : columns) {
      exprs.push_back(MakeAttribute(column));
    }
    exprs.push_back(std::move(task));
    output.push_back(TaskColumn());
    return MakeProject(plan, std::move(exprs), std::move(output));
  }

  Result<ExprPtr> Call(const std::string& name, ExprPtr a, ExprPtr b) const {
    return CallFunction(name, {std::move(a), std::move(b)}, config_);
  }

  /// The part of `row` where `rows` rows go into `parts` parts of equal size: part p begins at floor(p * rows / parts).
  Result<ExprPtr> PartOf(ExprPtr row, std::int64_t rows, std::int64_t parts) const {
    FLEUVE_ASSIGN(ExprPtr next, Call("+", std::move(row), Bigint(1)));
    FLEUVE_ASSIGN(ExprPtr scaled, Call("*", std::move(next), Bigint(parts)));
    FLEUVE_ASSIGN(ExprPtr last, Call("-", std::move(scaled), Bigint(1)));
    return Call("div", std::move(last), Bigint(rows));
  }

  /// `plan`, which gives the column of the range, with the task that the column tells.
  Result<Spread> OfRange(const PlanPtr& plan, const RangeParts& range) const {
    const auto column = std::find_if(plan->output.begin(), plan->output.end(),
                                     [&](const Attribute& attribute) { return attribute.id == range.column; });
    FLEUVE_ASSIGN(ExprPtr shift, Call("-", MakeAttribute(*column), Bigint(range.start)));
    FLEUVE_ASSIGN(ExprPtr row, Call("div", std::move(shift), Bigint(range.step)));
    FLEUVE_ASSIGN(ExprPtr task, PartOf(std::move(row), range.rows, range.parts));
    return Spread{With(plan, std::move(task), plan->output), range.parts, false, range};
  }

  Result<Spread> Range(const PlanPtr& plan) const {
    const auto [start, end, step] = plan->range;
    const types::Int128 span = static_cast<types::Int128>(end) - start;
    const types::Int128 rows = step == 0 || (span > 0) != (step > 0) ? 0 : (span + step + (step > 0 ? -1 : 1)) / step;
    std::int64_t product = 0;
    if (plan->count <= 1 || rows <= 0 || rows >= INT64_MAX ||
        __builtin_mul_overflow(static_cast<std::int64_t>(rows) + 1, plan->count, &product)) {
      return One(plan, plan->count <= 1);
    }
    return OfRange(plan, {plan->output.at(0).id, start, step, static_cast<std::int64_t>(rows), plan->count});
  }

  Result<Spread> Repartition(const PlanPtr& plan) {
    const PlanPtr& input = plan->children.at(0);
    if (plan->count <= 1) {
      return One(plan, plan->count == 1);
    }
    if (!plan->shuffle) {
      FLEUVE_ASSIGN(Spread child, Visit(input));
      if (child.tasks <= plan->count) {
        return child;
      }
      FLEUVE_ASSIGN(ExprPtr task, PartOf(MakeAttribute(child.plan->output.back()), child.tasks, plan->count));
      return Many(With(child.plan, std::move(task), input->output), plan->count);
    }
    ExprPtr number;
    if (plan->exprs.empty()) {
      FLEUVE_ASSIGN(number, CallFunction("monotonically_increasing_id", {}, config_));
    } else {
      FLEUVE_ASSIGN(number, CallFunction("hash", plan->exprs, config_));
    }
    FLEUVE_ASSIGN(ExprPtr task, Call("pmod", std::move(number), Bigint(plan->count)));
    return Many(With(input, std::move(task), input->output), plan->count);
  }

  /// The tasks of the first child, then those of the next, and so on; one where each has one.
  Result<Spread> Union(const PlanPtr& plan) {
    auto node = std::make_shared<LogicalPlan>(*plan);
    node->output.push_back(TaskColumn());
    std::int64_t tasks = 0;
    bool single = true;
    for (PlanPtr& child : node->children) {
      FLEUVE_ASSIGN(const Spread spread, Visit(child));
      single = single && spread.single;
      ExprPtr task = Bigint(tasks);
      if (spread.tasks > 1) {
        FLEUVE_ASSIGN(task, Call("+", MakeAttribute(spread.plan->output.back()), std::move(task)));
      }
      child = With(spread.plan, std::move(task), child->output);
      tasks += spread.tasks;
    }
    if (single) {
      return One(plan, true);
    }
    return Many(std::move(node), tasks);
  }

  const AnalysisConfig& config_;
};

}  // namespace

Result<TaskedPlan> SpreadOverTasks(const PlanPtr& plan, const AnalysisConfig& config) {
  if (plan->is_streaming) {
    return TaskedPlan{plan, 1};
  }
  FLEUVE_ASSIGN(Spread spread, Spreader(config).Visit(plan));
  return TaskedPlan{std::move(spread.plan), spread.tasks};
}

}  // namespace fleuve::plan
