// Filters of a streaming plan as low as Spark has them before it plans a batch: what they leave out reaches neither
// state nor watermark.

#include <algorithm>
#include <map>

#include "plan/prepare_internal.h"
#include "plan/streaming_check.h"

namespace fleuve::plan {

namespace {

/// True where a NULL in any operand makes the result NULL.
bool IsNullIntolerant(const Expr& expr) {
  if (expr.kind == ExprKind::kCast) {
    return true;
  }
  if (expr.kind != ExprKind::kCall) {
    return false;
  }
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge", "not", "spark_time_add",
                           "spark_timestamp_minus_timestamp", "spark_negate"}) {
    if (expr.function == name) {
      return true;
    }
  }
  return expr.function.starts_with("spark_add") || expr.function.starts_with("spark_subtract") ||
         expr.function.starts_with("spark_multiply") || expr.function.starts_with("spark_interval_add") ||
         expr.function.starts_with("spark_interval_subtract");
}

/// Columns that are not NULL where `condition` is true.
void CollectNotNull(const ExprPtr& condition, std::map<std::int64_t, Attribute>& columns) {
  if (condition->kind == ExprKind::kAttribute) {
    if (condition->attribute.nullable && !condition->is_outer) {
      columns.emplace(condition->attribute.id.value, condition->attribute);
    }
    return;
  }
  if (IsNullIntolerant(*condition)) {
    for (const ExprPtr& child : condition->children) {
      CollectNotNull(child, columns);
    }
  }
}

PlanPtr WithoutNulls(const PlanPtr& side, const std::map<std::int64_t, Attribute>& columns) {
  const Ids ids = IdsOf(side->output);
  ExprPtr condition;
  for (const auto& [id, attribute] : columns) {
    if (!ids.contains(id)) {
      continue;
    }
    const ExprPtr valid = MakeCall("isnotnull", {MakeAttribute(attribute)}, types::DataType::Boolean(), false);
    condition = condition ? MakeAnd(condition, valid) : valid;
  }
  return condition ? MakeFilter(side, condition) : side;
}

/// Rows of the streams that no condition of the join can be true for are left out before it, where nothing is given of
/// rows that meet nobody.
PlanPtr LeaveOutNulls(const PlanPtr& plan) {
  return RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr {
    if (node->kind != PlanKind::kJoin || !node->is_streaming || node->condition == nullptr || node->lateral) {
      return nullptr;
    }
    const JoinType type = node->join_type;
    const bool inner = type == JoinType::kInner || type == JoinType::kCross || type == JoinType::kLeftSemi;
    std::map<std::int64_t, Attribute> columns;
    for (const ExprPtr& condition : Flatten(node->condition, "and")) {
      CollectNotNull(condition, columns);
    }
    auto copy = std::make_shared<LogicalPlan>(*node);
    if ((inner || type == JoinType::kRight) && node->children[0]->is_streaming) {
      copy->children[0] = WithoutNulls(node->children[0], columns);
    }
    if ((inner || type == JoinType::kLeft) && node->children[1]->is_streaming) {
      copy->children[1] = WithoutNulls(node->children[1], columns);
    }
    return copy;
  });
}

}  // namespace

Result<PlanPtr> PushStreamingFilters(const PlanPtr& plan) {
  // What is no stream is planned anew for each batch: it stands aside meanwhile.
  std::map<const LogicalPlan*, PlanPtr> aside;
  const PlanPtr streams = RewritePlan(LeaveOutNulls(plan), [&aside](const PlanPtr& node) -> PlanPtr {
    if (!node->is_streaming) {
      return nullptr;
    }
    std::shared_ptr<LogicalPlan> copy;
    for (std::size_t i = 0; i < node->children.size(); ++i) {
      const PlanPtr& child = node->children[i];
      if (child->is_streaming || child->kind == PlanKind::kRows) {
        continue;
      }
      auto leaf = std::make_shared<LogicalPlan>();
      leaf->kind = PlanKind::kRows;
      leaf->output = child->output;
      aside.emplace(leaf.get(), child);
      copy = copy ? copy : std::make_shared<LogicalPlan>(*node);
      copy->children[i] = std::move(leaf);
    }
    return copy;
  });
  FLEUVE_ASSIGN(const PlanPtr pushed, PushFilters(streams));
  return RewritePlan(pushed, [&aside](const PlanPtr& node) -> PlanPtr {
    const auto found = aside.find(node.get());
    return found == aside.end() ? nullptr : found->second;
  });
}

}  // namespace fleuve::plan
