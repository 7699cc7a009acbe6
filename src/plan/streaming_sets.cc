// INTERSECT and EXCEPT of a stream and a table: a semi or anti join with the table, of which each row comes once.

#include "plan/streaming_check.h"

namespace fleuve::plan {

PlanPtr ReplaceStreamingSets(const PlanPtr& plan) {
  return RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr {
    const bool intersect = node->kind == PlanKind::kIntersect;
    if ((!intersect && node->kind != PlanKind::kExcept) || !node->is_streaming || node->all) {
      return nullptr;
    }
    const PlanPtr& left = node->children[0];
    const PlanPtr& right = node->children[1];
    auto join = std::make_shared<LogicalPlan>();
    join->kind = PlanKind::kJoin;
    join->is_streaming = true;
    join->join_type = intersect ? JoinType::kLeftSemi : JoinType::kLeftAnti;
    join->children = {left, right};
    join->output = left->output;
    for (std::size_t i = 0; i < left->output.size() && i < right->output.size(); ++i) {
      const ExprPtr same = MakeCall("eqnullsafe", {MakeAttribute(left->output[i]), MakeAttribute(right->output[i])},
                                    types::DataType::Boolean(), false);
      join->condition = join->condition ? MakeAnd(join->condition, same) : same;
    }
    auto distinct = std::make_shared<LogicalPlan>();
    distinct->kind = PlanKind::kAggregate;
    distinct->is_streaming = true;
    for (const Attribute& attribute : left->output) {
      distinct->grouping.push_back(MakeAttribute(attribute));
    }
    distinct->output = node->output;
    distinct->children = {std::move(join)};
    return distinct;
  });
}

}  // namespace fleuve::plan
