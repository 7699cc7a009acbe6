// input_file_name(): the file of a row is found through the hidden `_metadata` column of the scan below.

#include <algorithm>
#include <optional>

#include "plan/input_file_internal.h"

namespace fleuve::plan {

namespace {

bool IsInputFileName(const Expr& expr) {
  return expr.kind == ExprKind::kCall && expr.function == "spark_input_file_name";
}

bool Asks(const ExprPtr& expr) {
  bool found = false;
  if (expr != nullptr) {
    VisitExpr(expr, [&](const Expr& node) { found = found || IsInputFileName(node); });
  }
  return found;
}

/// A plan that gives `_metadata` of its only scan too, as a hidden column.
struct Exposed {
  PlanPtr plan;
  Attribute metadata;
};

std::optional<Exposed> Expose(const PlanPtr& plan) {
  switch (plan->kind) {
    case PlanKind::kTable:
    case PlanKind::kStream:
    case PlanKind::kFileScan:
      for (const Attribute& attribute : plan->output) {
        if (attribute.hidden && attribute.name == "_metadata") {
          return Exposed{plan, attribute};
        }
      }
      return std::nullopt;
    case PlanKind::kProject:
    case PlanKind::kFilter:
    case PlanKind::kSort:
    case PlanKind::kLimit:
    case PlanKind::kOffset:
    case PlanKind::kSample:
    case PlanKind::kRepartition:
    case PlanKind::kWatermark:
    case PlanKind::kMetrics:
      break;
    default:
      return std::nullopt;
  }
  std::optional<Exposed> below = Expose(plan->children.front());
  if (!below) {
    return std::nullopt;
  }
  auto node = std::make_shared<LogicalPlan>(*plan);
  node->children = {below->plan};
  const bool there = std::any_of(node->output.begin(), node->output.end(),
                                 [&](const Attribute& attribute) { return attribute.id == below->metadata.id; });
  if (!there) {
    if (node->kind == PlanKind::kProject) {
      node->exprs.push_back(MakeAttribute(below->metadata));
    }
    node->output.push_back(below->metadata);
  }
  return Exposed{std::move(node), below->metadata};
}

ExprPtr Replace(const ExprPtr& expr, const Attribute& metadata) {
  if (!Asks(expr)) {
    return expr;
  }
  return RewriteExpr(expr, [&](const ExprPtr& node) -> ExprPtr {
    return IsInputFileName(*node) ? WithDisplay(MakeGetField(MakeAttribute(metadata), 0), node->display) : nullptr;
  });
}

PlanPtr RewriteNode(const PlanPtr& plan) {
  if (plan->children.size() != 1) {
    return nullptr;
  }
  bool asks = Asks(plan->condition);
  for (const auto* exprs : {&plan->exprs, &plan->grouping, &plan->aggregates}) {
    for (const ExprPtr& expr : *exprs) {
      asks = asks || Asks(expr);
    }
  }
  for (const SortKey& key : plan->order_by) {
    asks = asks || Asks(key.expr);
  }
  if (!asks) {
    return nullptr;
  }
  const std::optional<Exposed> below = Expose(plan->children.front());
  if (!below) {
    return nullptr;
  }
  auto node = std::make_shared<LogicalPlan>(*plan);
  node->children = {below->plan};
  if (node->condition != nullptr) {
    node->condition = Replace(node->condition, below->metadata);
  }
  for (auto* exprs : {&node->exprs, &node->grouping, &node->aggregates}) {
    for (ExprPtr& expr : *exprs) {
      expr = Replace(expr, below->metadata);
    }
  }
  for (SortKey& key : node->order_by) {
    key.expr = Replace(key.expr, below->metadata);
  }
  return node;
}

}  // namespace

PlanPtr FillInputFileNames(const PlanPtr& plan) {
  bool asks = false;
  VisitPlan(plan, [&](const LogicalPlan& node) {
    for (const auto* exprs : {&node.exprs, &node.grouping, &node.aggregates}) {
      for (const ExprPtr& expr : *exprs) {
        asks = asks || Asks(expr);
      }
    }
    asks = asks || Asks(node.condition);
    for (const SortKey& key : node.order_by) {
      asks = asks || Asks(key.expr);
    }
  });
  return asks ? RewritePlan(plan, RewriteNode) : plan;
}

}  // namespace fleuve::plan
