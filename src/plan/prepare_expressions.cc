#include <algorithm>

#include "plan/prepare_internal.h"

namespace fleuve::plan {
namespace {

using types::DataType;

ExprPtr BooleanLiteral(bool value) { return MakeLiteral(types::Value(value), DataType::Boolean()); }

/// TRUE unless the operand is FALSE (for `and`), unless it is TRUE (for `or`).
ExprPtr Open(const ExprPtr& operand, bool is_and) {
  ExprPtr test = operand;
  if (!is_and) {
    test = MakeCall("not", {operand}, DataType::Boolean(), operand->nullable);
  }
  if (!test->nullable) {
    return test;
  }
  return MakeCall("coalesce", {test, BooleanLiteral(true)}, DataType::Boolean(), false);
}

/// The operands of an AND or OR, each evaluated only where the ones before leave the outcome open.
ExprPtr Guarded(const std::vector<ExprPtr>& operands, std::size_t first, bool is_and) {
  const char* function = is_and ? "and" : "or";
  // Everything before the next operand that can fail is evaluated together.
  std::size_t fallible = first + 1;
  while (fallible < operands.size() && !operands[fallible]->can_fail) {
    ++fallible;
  }
  const std::vector<ExprPtr> before(
      operands.begin() + static_cast<std::ptrdiff_t>(first),
      operands.begin() + static_cast<std::ptrdiff_t>(std::min(fallible, operands.size())));
  ExprPtr head = Balanced(before, function);
  if (fallible >= operands.size()) {
    return head;
  }
  ExprPtr rest = Guarded(operands, fallible, is_and);
  ExprPtr both = head->nullable ? MakeCall(function, {head, rest}, DataType::Boolean(), true) : rest;
  return MakeCase({Open(head, is_and), both, BooleanLiteral(!is_and)}, true, DataType::Boolean());
}

bool HoldsAggregateOrSubquery(const ExprPtr& expr) {
  return AnyExpr(
      expr, [](const Expr& node) { return node.kind == ExprKind::kAggregate || node.kind == ExprKind::kSubquery; });
}

ExprPtr GuardExpr(const ExprPtr& expr);

/// Operands of a chain, themselves guarded.
std::vector<ExprPtr> GuardedOperands(const ExprPtr& expr, const char* function) {
  std::vector<ExprPtr> operands = Flatten(expr, function);
  for (ExprPtr& operand : operands) {
    operand = GuardExpr(operand);
  }
  return operands;
}

bool NeedsWork(const ExprPtr& expr) {
  return AnyExpr(expr, [](const Expr& node) {
    return (node.kind == ExprKind::kCall && (node.function == "and" || node.function == "or")) ||
           (node.kind == ExprKind::kAggregate && node.filter != nullptr && node.can_fail);
  });
}

ExprPtr GuardExpr(const ExprPtr& expr) {
  if (expr->children.empty() && expr->kind != ExprKind::kAggregate) {
    return expr;
  }
  const bool is_and = expr->kind == ExprKind::kCall && expr->function == "and";
  const bool is_or = expr->kind == ExprKind::kCall && expr->function == "or";
  if (is_and || is_or) {
    const char* function = is_and ? "and" : "or";
    const std::vector<ExprPtr> operands = GuardedOperands(expr, function);
    const bool fallible =
        std::any_of(operands.begin() + 1, operands.end(), [](const ExprPtr& operand) { return operand->can_fail; });
    const ExprPtr made = fallible ? Guarded(operands, 0, is_and) : Balanced(operands, function);
    return WithDisplay(made, expr->display);
  }
  std::vector<ExprPtr> operands = OperandsOf(*expr);
  bool changed = false;
  for (ExprPtr& operand : operands) {
    ExprPtr made = NeedsWork(operand) ? GuardExpr(operand) : operand;
    changed = changed || made != operand;
    operand = std::move(made);
  }
  ExprPtr made = changed ? WithOperands(expr, operands) : expr;
  if (made->kind == ExprKind::kAggregate && made->filter != nullptr) {
    std::vector<ExprPtr> children = made->children;
    bool guarded = false;
    for (ExprPtr& child : children) {
      if (child->can_fail) {
        child = MakeCase({made->filter, child}, false, child->type);
        guarded = true;
      }
    }
    if (guarded) {
      made = WithChildren(made, std::move(children));
    }
  }
  return made;
}

/// The conjuncts of a filter, each evaluated only where all before it are TRUE: a row that one of them leaves out is
/// gone, NULL or not.
ExprPtr Stepwise(const std::vector<ExprPtr>& operands, std::size_t first) {
  std::size_t fallible = first + 1;
  while (fallible < operands.size() && !operands[fallible]->can_fail) {
    ++fallible;
  }
  const std::vector<ExprPtr> before(
      operands.begin() + static_cast<std::ptrdiff_t>(first),
      operands.begin() + static_cast<std::ptrdiff_t>(std::min(fallible, operands.size())));
  ExprPtr head = Balanced(before, "and");
  if (fallible >= operands.size()) {
    return head;
  }
  return MakeCase({std::move(head), Stepwise(operands, fallible), BooleanLiteral(false)}, true, DataType::Boolean());
}

/// A filter's condition: what comes before the first operand that can fail stays bare, so that it can be pushed down.
ExprPtr GuardCondition(const ExprPtr& condition) {
  const std::vector<ExprPtr> operands = GuardedOperands(condition, "and");
  std::size_t fallible = 1;
  while (fallible < operands.size() && !operands[fallible]->can_fail) {
    ++fallible;
  }
  if (fallible >= operands.size()) {
    return Balanced(operands, "and");
  }
  std::vector<ExprPtr> bare;
  for (std::size_t i = 0; i < fallible; ++i) {
    if (!operands[i]->can_fail) {
      bare.push_back(operands[i]);
    }
  }
  bare.push_back(Stepwise(operands, 0));
  return Balanced(bare, "and");
}

// ---- Literals of another type ----

/// The literal as the cast gives it; null where the cast is left to the engine.
ExprPtr FoldedCast(const ExprPtr& expr) {
  if (expr->kind != ExprKind::kCast || expr->children.front()->kind != ExprKind::kLiteral) {
    return nullptr;
  }
  const Expr& literal = *expr->children.front();
  if (!literal.function.empty() || literal.value.is_null() || !literal.type.IsIntegral() || expr->can_fail) {
    return nullptr;
  }
  if (expr->type.Is(types::TypeKind::kDouble)) {
    return WithDisplay(MakeLiteral(types::Value(static_cast<double>(literal.value.integer())), expr->type),
                       expr->display);
  }
  const auto rank = [](const DataType& type) { return static_cast<int>(type.kind()); };
  static_assert(types::TypeKind::kByte < types::TypeKind::kShort && types::TypeKind::kShort < types::TypeKind::kInt &&
                types::TypeKind::kInt < types::TypeKind::kLong);
  if (!expr->type.IsIntegral() || rank(expr->type) <= rank(literal.type)) {
    return nullptr;
  }
  return WithDisplay(MakeLiteral(literal.value, expr->type), expr->display);
}

// ---- Deep expressions ----

constexpr int kMaxLevels = 64;
constexpr int kCutLevel = 40;

struct Cut {
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> attributes;
};

/// True where the operands of the node may be left unevaluated.
bool IsConditional(const Expr& expr) {
  if (expr.kind == ExprKind::kCase || expr.kind == ExprKind::kLambda) {
    return true;
  }
  return expr.kind == ExprKind::kCall && (expr.function == "and" || expr.function == "or" || expr.function == "if" ||
                                          expr.function == "coalesce" || expr.function == "in");
}

/// Replaces subtrees of kCutLevel levels by columns; returns the levels of what is left.
ExprPtr CutExpr(const ExprPtr& expr, bool conditional, Cut& cut, int* levels) {
  std::vector<ExprPtr> operands = OperandsOf(*expr);
  const bool below = conditional || IsConditional(*expr);
  bool changed = false;
  int deepest = 0;
  for (ExprPtr& operand : operands) {
    int operand_levels = 0;
    ExprPtr made = CutExpr(operand, below, cut, &operand_levels);
    deepest = std::max(deepest, operand_levels);
    changed = changed || made != operand;
    operand = std::move(made);
  }
  ExprPtr made = changed ? WithOperands(expr, operands) : expr;
  *levels = deepest + 1;
  const bool movable = *levels >= kCutLevel && made->deterministic && !(conditional && made->can_fail) &&
                       (made->kind == ExprKind::kCall || made->kind == ExprKind::kCast ||
                        made->kind == ExprKind::kCase || made->kind == ExprKind::kGetField) &&
                       !AnyExpr(made, [](const Expr& node) {
                         return node.kind == ExprKind::kLambdaVariable || node.kind == ExprKind::kAggregate ||
                                node.kind == ExprKind::kSubquery || node.is_outer;
                       });
  if (!movable) {
    return made;
  }
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.name = "part";
  attribute.type = made->type;
  attribute.nullable = made->nullable;
  attribute.hidden = true;
  cut.exprs.push_back(made);
  cut.attributes.push_back(attribute);
  *levels = 1;
  return MakeAttribute(attribute);
}

PlanPtr SplitNode(const PlanPtr& plan) {
  switch (plan->kind) {
    case PlanKind::kProject:
    case PlanKind::kFilter:
    case PlanKind::kAggregate:
    case PlanKind::kSort:
    case PlanKind::kExpand:
      break;
    default:
      return nullptr;
  }
  bool deep = false;
  for (const ExprPtr& expr : ExpressionsOf(*plan)) {
    deep = deep || (!expr->children.empty() && DepthOf(expr) > kMaxLevels);
  }
  if (!deep) {
    return nullptr;
  }
  // Each round moves the lowest parts of what is too deep one projection down.
  std::vector<Cut> rounds;
  PlanPtr node = plan;
  Cut cut;
  node = MapExpressions(node, [&cut](const ExprPtr& expr) -> ExprPtr {
    if (expr->children.empty() || DepthOf(expr) <= kMaxLevels) {
      return nullptr;
    }
    int levels = 0;
    return CutExpr(expr, false, cut, &levels);
  });
  if (cut.exprs.empty()) {
    return nullptr;
  }
  // A part may refer to earlier parts: one projection per generation.
  PlanPtr below = node->children.front();
  std::vector<bool> placed(cut.exprs.size(), false);
  std::size_t left = cut.exprs.size();
  while (left > 0) {
    std::vector<ExprPtr> exprs;
    std::vector<Attribute> output = below->output;
    for (const Attribute& attribute : output) {
      exprs.push_back(MakeAttribute(attribute));
    }
    std::vector<std::size_t> now;
    for (std::size_t i = 0; i < cut.exprs.size(); ++i) {
      if (placed[i]) {
        continue;
      }
      const bool ready = !AnyExpr(cut.exprs[i], [&](const Expr& part) {
        if (part.kind != ExprKind::kAttribute) {
          return false;
        }
        for (std::size_t j = 0; j < cut.attributes.size(); ++j) {
          if (!placed[j] && cut.attributes[j].id == part.attribute.id) {
            return true;
          }
        }
        return false;
      });
      if (ready) {
        now.push_back(i);
      }
    }
    for (const std::size_t i : now) {
      exprs.push_back(cut.exprs[i]);
      output.push_back(cut.attributes[i]);
    }
    for (const std::size_t i : now) {
      placed[i] = true;
    }
    left -= now.size();
    below = MakeProject(below, std::move(exprs), std::move(output));
    if (now.empty()) {
      return nullptr;
    }
  }
  auto copy = std::make_shared<LogicalPlan>(*node);
  copy->children.front() = below;
  if (plan->kind != PlanKind::kFilter && plan->kind != PlanKind::kSort) {
    return copy;
  }
  copy->output = below->output;
  std::vector<ExprPtr> exprs;
  for (const Attribute& attribute : plan->output) {
    exprs.push_back(MakeAttribute(attribute));
  }
  return MakeProject(std::move(copy), std::move(exprs), plan->output);
}

}  // namespace

PlanPtr FoldLiterals(const PlanPtr& plan) {
  return RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr {
    return MapExpressions(node, [](const ExprPtr& expr) -> ExprPtr {
      const bool plain = expr->children.empty() && expr->kind != ExprKind::kAggregate;
      return plain ? nullptr : RewriteExpr(expr, FoldedCast);
    });
  });
}

namespace {

/// `expr` only for the rows that pass the filter below it: what the engine moves below that filter keeps its guard.
ExprPtr OnlyWhere(const ExprPtr& condition, const ExprPtr& expr) {
  if (!expr->can_fail || HoldsAggregateOrSubquery(expr)) {
    return expr;
  }
  return WithDisplay(MakeCase({condition, expr}, false, expr->type), expr->display);
}

PlanPtr GuardAboveFilters(const PlanPtr& plan, bool below_filter) {
  const bool below = below_filter || plan->kind == PlanKind::kFilter || plan->kind == PlanKind::kJoin;
  PlanPtr made = plan;
  for (std::size_t i = 0; i < plan->children.size(); ++i) {
    PlanPtr child = GuardAboveFilters(plan->children[i], below);
    if (child != plan->children[i]) {
      auto copy = std::make_shared<LogicalPlan>(*made);
      copy->children[i] = std::move(child);
      made = std::move(copy);
    }
  }
  const bool computes = plan->kind == PlanKind::kProject || plan->kind == PlanKind::kAggregate;
  if (!below_filter || !computes || made->children.front()->kind != PlanKind::kFilter) {
    return made;
  }
  const ExprPtr condition = made->children.front()->condition;
  const std::vector<ExprPtr>& exprs = plan->kind == PlanKind::kProject ? made->exprs : made->grouping;
  const bool fallible = std::any_of(exprs.begin(), exprs.end(), [](const ExprPtr& expr) { return expr->can_fail; });
  if (!fallible || !condition->deterministic || HoldsAggregateOrSubquery(condition)) {
    return made;
  }
  auto copy = std::make_shared<LogicalPlan>(*made);
  for (ExprPtr& expr : plan->kind == PlanKind::kProject ? copy->exprs : copy->grouping) {
    expr = OnlyWhere(condition, expr);
  }
  return copy;
}

}  // namespace

PlanPtr AddGuards(const PlanPtr& unguarded) {
  const PlanPtr plan = GuardAboveFilters(unguarded, false);
  return RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr {
    const ExprPtr condition = node->condition;
    return MapExpressions(node, [&condition](const ExprPtr& expr) -> ExprPtr {
      if (!NeedsWork(expr)) {
        return nullptr;
      }
      return expr == condition ? GuardCondition(expr) : GuardExpr(expr);
    });
  });
}

PlanPtr SplitDeepExpressions(const PlanPtr& plan) {
  return RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr { return SplitNode(node); });
}

}  // namespace fleuve::plan
