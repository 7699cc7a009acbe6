#include <algorithm>
#include <map>

#include "stream/pushed_filters_internal.h"

namespace fleuve::stream {

namespace {

using plan::Expr;
using plan::ExprKind;
using plan::ExprPtr;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;

void Conjuncts(const ExprPtr& expr, std::vector<ExprPtr>& out) {
  if (expr->kind == ExprKind::kCall && expr->function == "and") {
    for (const ExprPtr& child : expr->children) {
      Conjuncts(child, out);
    }
  } else {
    out.push_back(expr);
  }
}

bool IsConstant(const Expr& expr) { return expr.kind == ExprKind::kLiteral && expr.function.empty(); }

/// A column, or a number column made wider for the comparison.
bool IsColumn(const Expr& expr) {
  if (expr.kind == ExprKind::kAttribute) {
    return true;
  }
  return expr.kind == ExprKind::kCast && expr.type.IsNumeric() && expr.children[0]->type.IsNumeric() &&
         expr.children[0]->kind == ExprKind::kAttribute;
}

bool IsPushed(const Expr& expr) {
  if (expr.kind == ExprKind::kAttribute) {
    return expr.type.Is(types::TypeKind::kBoolean);
  }
  if (expr.kind != ExprKind::kCall) {
    return false;
  }
  const auto& children = expr.children;
  if (expr.function == "and" || expr.function == "or" || expr.function == "not") {
    return std::all_of(children.begin(), children.end(), [](const ExprPtr& child) { return IsPushed(*child); });
  }
  if (expr.function == "isnull" || expr.function == "isnotnull") {
    return IsColumn(*children[0]);
  }
  for (const char* comparison : {"eq", "ne", "lt", "le", "gt", "ge", "eqnullsafe"}) {
    if (expr.function == comparison) {
      return (IsColumn(*children[0]) && IsConstant(*children[1])) ||
             (IsConstant(*children[0]) && IsColumn(*children[1]));
    }
  }
  if (expr.function == "in") {
    return IsColumn(*children[0]) &&
           std::all_of(children.begin() + 1, children.end(), [](const ExprPtr& child) { return IsConstant(*child); });
  }
  for (const char* of_text : {"spark_startswith", "spark_endswith", "spark_contains"}) {
    if (expr.function == of_text) {
      return children.size() >= 2 && children[0]->kind == ExprKind::kAttribute && IsConstant(*children[1]);
    }
  }
  return false;
}

bool IsText(const LogicalPlan& leaf) {
  return leaf.kind == PlanKind::kFileScan &&
         (leaf.scan->format == plan::FileFormat::kJson || leaf.scan->format == plan::FileFormat::kCsv);
}

/// A node that looks at rows for the loop; the user's observe() is none.
bool IsOwnMetrics(const LogicalPlan& node) {
  return node.kind == PlanKind::kMetrics && node.name.starts_with("fleuve.");
}

/// The node below the projections and filters of `node`; `columns` become expressions over its output, null where they
/// are more than a choice of its columns.
const LogicalPlan* LeafBelow(const LogicalPlan& node, std::map<std::int64_t, ExprPtr>& columns) {
  const LogicalPlan* at = &node;
  for (;;) {
    if (at->kind == PlanKind::kProject) {
      std::map<std::int64_t, ExprPtr> below;
      for (std::size_t i = 0; i < at->exprs.size() && i < at->output.size(); ++i) {
        below[at->output[i].id.value] = at->exprs[i];
      }
      for (auto& [id, expr] : columns) {
        if (expr != nullptr && expr->kind == ExprKind::kAttribute) {
          const auto found = below.find(expr->attribute.id.value);
          expr = found == below.end() ? nullptr : found->second;
        } else {
          expr = nullptr;
        }
      }
    } else if (at->kind != PlanKind::kFilter && !IsOwnMetrics(*at)) {
      return at;
    } else if (at->event_time.value != 0) {
      // A filter that asks for the event time stays above its watermark.
      for (auto& [id, expr] : columns) {
        if (expr != nullptr && expr->kind == ExprKind::kAttribute && expr->attribute.id == at->event_time) {
          expr = nullptr;
        }
      }
    }
    at = at->children[0].get();
  }
}

}  // namespace

PlanPtr CountRows(PlanPtr below, std::size_t index) {
  auto count = std::make_shared<plan::Expr>();
  count->kind = ExprKind::kAggregate;
  count->function = "duck_count_star";
  count->type = types::DataType::Long();
  count->nullable = false;
  count->display = "count(1)";
  auto counted = std::make_shared<LogicalPlan>();
  counted->kind = PlanKind::kMetrics;
  counted->name = kPassedRowsPrefix + std::to_string(index);
  counted->output = below->output;
  counted->children = {std::move(below)};
  counted->exprs = {count};
  return counted;
}

PlanPtr CountPassedRows(const PlanPtr& filter, int (*leaf_index)(const LogicalPlan& node)) {
  std::map<std::int64_t, ExprPtr> columns;
  for (const auto& attribute : filter->children[0]->output) {
    columns[attribute.id.value] = plan::MakeAttribute(attribute);
  }
  const LogicalPlan* leaf = LeafBelow(*filter->children[0], columns);
  const int index = leaf_index(*leaf);
  if (index < 0 || !IsText(*leaf)) {
    return nullptr;
  }
  const auto in_files = [&](const ExprPtr& condition) {
    bool all = condition->deterministic;
    plan::VisitExpr(condition, [&](const Expr& part) {
      if (part.kind == ExprKind::kAttribute) {
        const auto found = columns.find(part.attribute.id.value);
        const ExprPtr column = found == columns.end() ? nullptr : found->second;
        all = all && column != nullptr && column->kind == ExprKind::kAttribute &&
              types::FieldIndex(leaf->scan->data_schema, column->attribute.name, false).has_value();
      }
    });
    return all;
  };
  std::vector<ExprPtr> conditions;
  Conjuncts(filter->condition, conditions);
  ExprPtr pushed;
  ExprPtr rest;
  for (const ExprPtr& condition : conditions) {
    ExprPtr& part = IsPushed(*condition) && in_files(condition) ? pushed : rest;
    part = part ? plan::MakeAnd(part, condition) : condition;
  }
  if (!pushed) {
    return nullptr;
  }
  // A filter below was counted before this one was seen.
  const std::string name = kPassedRowsPrefix + std::to_string(index);
  const PlanPtr below = plan::RewritePlan(filter->children[0], [&](const PlanPtr& node) -> PlanPtr {
    return node->kind == PlanKind::kMetrics && node->name == name ? node->children[0] : nullptr;
  });
  PlanPtr counted = CountRows(plan::MakeFilter(below, pushed), static_cast<std::size_t>(index));
  return rest ? plan::MakeFilter(std::move(counted), rest) : counted;
}

}  // namespace fleuve::stream
