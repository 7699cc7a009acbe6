#include "plan/prepare_internal.h"

namespace fleuve::plan {
namespace {

/// count(*) alone, or count of a constant.
bool IsRowCount(const ExprPtr& expr) {
  return expr->kind == ExprKind::kAggregate && expr->function == "duck_count_star" && !expr->distinct &&
         expr->filter == nullptr && expr->children.empty();
}

/// What stands below projections, which keep the number of rows.
const LogicalPlan* BelowProjections(const LogicalPlan& aggregate) {
  const LogicalPlan* node = aggregate.children[0].get();
  while (node->kind == PlanKind::kProject) {
    node = node->children[0].get();
  }
  return node;
}

bool CountsRows(const LogicalPlan& node) {
  if (node.kind != PlanKind::kAggregate || !node.grouping.empty() || node.aggregates.empty() || node.is_streaming) {
    return false;
  }
  for (const ExprPtr& aggregate : node.aggregates) {
    if (!IsRowCount(aggregate)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Ids CountsOfTables(const PlanPtr& plan) {
  Ids counts;
  VisitPlan(plan, [&](const LogicalPlan& node) {
    if (!CountsRows(node)) {
      return;
    }
    const LogicalPlan* leaf = BelowProjections(node);
    // Of other formats nobody has written down how many rows a file has.
    if (leaf->kind == PlanKind::kTable && leaf->table->provider() == "delta") {
      counts.insert(node.output[0].id.value);
    }
  });
  return counts;
}

PlanPtr CountFromStatistics(const PlanPtr& plan, const Ids& counts) {
  if (counts.empty()) {
    return plan;
  }
  return RewritePlan(plan, [&counts](const PlanPtr& node) -> PlanPtr {
    if (!CountsRows(*node) || !counts.contains(node->output[0].id.value)) {
      return nullptr;
    }
    const LogicalPlan* leaf = BelowProjections(*node);
    // Constants are what change feeds give each file: their rows are not the file's.
    if (leaf->kind != PlanKind::kFileScan || !leaf->scan->constants_schema.fields().empty()) {
      return nullptr;
    }
    std::int64_t rows = 0;
    for (const ScanFile& file : leaf->scan->files) {
      if (file.row_count < 0) {
        return nullptr;
      }
      rows += file.row_count;  // deleted rows are not in it
    }
    auto one = std::make_shared<LogicalPlan>();
    one->kind = PlanKind::kOneRow;
    std::vector<ExprPtr> exprs(node->aggregates.size(), MakeLiteral(types::Value(rows), types::DataType::Long()));
    return MakeProject(std::move(one), std::move(exprs), node->output);
  });
}

}  // namespace fleuve::plan
