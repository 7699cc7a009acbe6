#include <algorithm>

#include "plan/prepare_internal.h"
#include "types/parts.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

bool IsReal(const DataType& type) { return type.Is(TypeKind::kFloat) || type.Is(TypeKind::kDouble); }
bool IsNestedOrder(const DataType& type) { return type.Is(TypeKind::kArray) || type.Is(TypeKind::kStruct); }

/// True where values of the type may hold NaN or -0.0.
bool HoldsReal(const DataType& type) { return types::AnyPart(type, IsReal); }

/// What stands for `expr` where rows are sorted.
ExprPtr OrderKey(const ExprPtr& expr) {
  if (IsReal(expr->type)) {
    return MakeCall("spark_order_number", {expr}, DataType::Long(), expr->nullable);
  }
  if (IsNestedOrder(expr->type)) {
    return MakeCall("spark_order_key", {expr}, DataType::Binary(), expr->nullable);
  }
  return expr;
}

/// What stands for `expr` where rows are put into groups and the value is shown.
ExprPtr Normalized(const ExprPtr& expr) {
  const bool done = expr->kind == ExprKind::kCall && expr->function == "spark_normalize_number";
  if (done || !HoldsReal(expr->type)) {
    return expr;
  }
  return WithDisplay(MakeCall("spark_normalize_number", {expr}, expr->type, expr->nullable), expr->display);
}

/// The distances of a RANGE frame are added to the key itself.
bool HasRangeDistance(const WindowFrame& frame) {
  return frame.unit == WindowFrame::Unit::kRange &&
         (frame.lower.kind == WindowFrame::BoundKind::kOffset || frame.upper.kind == WindowFrame::BoundKind::kOffset);
}

bool IsOrderComparison(const std::string& function) {
  return function == "lt" || function == "le" || function == "gt" || function == "ge";
}

bool MayNeedKeys(const Expr& expr) {
  return (expr.kind == ExprKind::kCall && expr.children.size() == 2 && IsNestedOrder(expr.children.front()->type)) ||
         expr.kind == ExprKind::kWindow || !expr.order_by.empty();
}

ExprPtr WithKeys(const ExprPtr& expr) {
  if (expr->kind == ExprKind::kCall && expr->children.size() == 2 && IsNestedOrder(expr->children.front()->type)) {
    const bool equality = expr->function == "eq" || expr->function == "ne" || expr->function == "eqnullsafe";
    if (IsOrderComparison(expr->function) || (equality && HoldsReal(expr->children.front()->type))) {
      return WithChildren(expr, {OrderKey(expr->children[0]), OrderKey(expr->children[1])});
    }
    return nullptr;
  }
  if ((expr->kind != ExprKind::kAggregate || expr->order_by.empty()) && expr->kind != ExprKind::kWindow) {
    return nullptr;
  }
  auto copy = std::make_shared<Expr>(*expr);
  for (SortKey& key : copy->order_by) {
    key.expr = OrderKey(key.expr);
  }
  for (ExprPtr& part : copy->window.partition_by) {
    part = OrderKey(part);
  }
  if (!HasRangeDistance(copy->window.frame)) {
    for (SortKey& key : copy->window.order_by) {
      key.expr = OrderKey(key.expr);
    }
  }
  return copy;
}

/// A projection that normalizes those columns of the plan which `chosen` names; the plan where there is nothing to do.
PlanPtr NormalizeColumns(const PlanPtr& plan, const std::vector<AttributeId>* chosen,
                         const std::vector<Attribute>& as) {
  std::vector<ExprPtr> exprs;
  bool changed = false;
  for (const Attribute& attribute : plan->output) {
    ExprPtr column = MakeAttribute(attribute);
    if (chosen == nullptr || std::find(chosen->begin(), chosen->end(), attribute.id) != chosen->end()) {
      column = Normalized(column);
    }
    changed = changed || column->kind != ExprKind::kAttribute;
    exprs.push_back(std::move(column));
  }
  return changed ? MakeProject(plan, std::move(exprs), as) : plan;
}

PlanPtr WithKeys(const PlanPtr& plan) {
  PlanPtr made = MapExpressions(plan, [](const ExprPtr& expr) -> ExprPtr {
    if (!AnyExpr(expr, MayNeedKeys)) {
      return nullptr;
    }
    return RewriteExpr(expr, [](const ExprPtr& node) { return WithKeys(node); });
  });
  switch (plan->kind) {
    case PlanKind::kSort: {
      auto copy = std::make_shared<LogicalPlan>(*made);
      for (SortKey& key : copy->order_by) {
        key.expr = OrderKey(key.expr);
      }
      return copy;
    }
    case PlanKind::kAggregate: {
      const auto real = [](const ExprPtr& expr) { return HoldsReal(expr->type); };
      if (std::none_of(made->grouping.begin(), made->grouping.end(), real)) {
        return made;
      }
      auto copy = std::make_shared<LogicalPlan>(*made);
      for (ExprPtr& key : copy->grouping) {
        key = Normalized(key);
      }
      return copy;
    }
    case PlanKind::kDistinct: {
      // The node's columns are those of its child, attribute by attribute.
      const PlanPtr& child = made->children.front();
      PlanPtr normalized = NormalizeColumns(child, made->keys.empty() ? nullptr : &made->keys, child->output);
      if (normalized == child) {
        return made;
      }
      auto copy = std::make_shared<LogicalPlan>(*made);
      copy->children.front() = std::move(normalized);
      return copy;
    }
    case PlanKind::kIntersect:
    case PlanKind::kExcept: {
      auto copy = std::make_shared<LogicalPlan>(*made);
      bool changed = false;
      for (PlanPtr& child : copy->children) {
        PlanPtr normalized = made->all ? child : NormalizeColumns(child, nullptr, child->output);
        changed = changed || normalized != child;
        child = std::move(normalized);
      }
      return changed ? PlanPtr(std::move(copy)) : made;
    }
    default:
      return made;
  }
}

}  // namespace

PlanPtr AddOrderKeys(const PlanPtr& plan) {
  return RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr { return WithKeys(node); });
}

}  // namespace fleuve::plan
