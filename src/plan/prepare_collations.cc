#include <algorithm>

#include "plan/prepare_internal.h"
#include "types/collation.h"

// Strings with a collation are carried, but not looked at: every operation on them is refused by name, as its result
// would be that of their bytes.

namespace fleuve::plan {

namespace {

Result<void> Refuse(const types::DataType& type) {
  if (const std::string* collation = types::CollationIn(type)) {
    return Error::Unsupported("an operation on strings with the collation " + *collation);
  }
  return {};
}

Result<void> RefuseKeys(const std::vector<SortKey>& keys) {
  for (const SortKey& key : keys) {
    FLEUVE_TRY(Refuse(key.expr->type));
  }
  return {};
}

/// True where the expression takes its operands as they are, whatever their strings hold.
bool OnlyCarries(const Expr& expr) {
  return expr.kind == ExprKind::kGetField || expr.function == "isnull" || expr.function == "isnotnull" ||
         (expr.function == "duck_count" && !expr.distinct);
}

Result<void> RefuseOperands(const Expr& expr) {
  for (const auto* operands : {&expr.children, &expr.window.partition_by}) {
    for (const ExprPtr& operand : *operands) {
      FLEUVE_TRY(Refuse(operand->type));
    }
  }
  FLEUVE_TRY(RefuseKeys(expr.window.order_by));
  return RefuseKeys(expr.order_by);
}

Result<void> RefuseInside(const ExprPtr& root) {
  Result<void> status;
  VisitExpr(root, [&status](const Expr& expr) {
    if (status.ok() && !OnlyCarries(expr)) {
      status = RefuseOperands(expr);
    }
  });
  return status;
}

Result<void> RefuseIn(const LogicalPlan& node) {
  const bool compares_rows = node.kind == PlanKind::kIntersect || node.kind == PlanKind::kExcept ||
                             (node.kind == PlanKind::kDistinct && node.keys.empty());
  if (compares_rows || !node.keys.empty()) {
    for (const Attribute& attribute : node.output) {
      const bool is_key = std::find(node.keys.begin(), node.keys.end(), attribute.id) != node.keys.end();
      if (compares_rows || is_key) {
        FLEUVE_TRY(Refuse(attribute.type));
      }
    }
  }
  for (const ExprPtr& key : node.grouping) {
    FLEUVE_TRY(Refuse(key->type));
  }
  FLEUVE_TRY(RefuseKeys(node.order_by));
  if (node.kind == PlanKind::kProject) {
    // A thousand chained withColumn() are a thousand projections of up to a thousand columns that only pass through.
    for (const ExprPtr& expr : node.exprs) {
      if (!expr->children.empty()) {
        FLEUVE_TRY(RefuseInside(expr));
      }
    }
    return {};
  }
  for (const ExprPtr& expr : ExpressionsOf(node)) {
    FLEUVE_TRY(RefuseInside(expr));
  }
  return {};
}

}  // namespace

Result<void> RefuseCollations(const PlanPtr& plan) {
  Result<void> status;
  VisitPlan(plan, [&status](const LogicalPlan& node) {
    if (status.ok()) {
      status = RefuseIn(node);
    }
  });
  return status;
}

}  // namespace fleuve::plan
