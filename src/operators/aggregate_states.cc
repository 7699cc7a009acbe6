#include <functional>

#include "operators/aggregate_states_internal.h"

namespace fleuve::operators {

namespace {

using plan::Expr;
using plan::ExprKind;
using plan::ExprPtr;
using types::DataType;
using types::TypeKind;

ExprPtr Aggregate(const Expr& call, std::string function, std::vector<ExprPtr> children, DataType type) {
  auto made = std::make_shared<Expr>();
  made->kind = ExprKind::kAggregate;
  made->function = std::move(function);
  made->children = std::move(children);
  made->type = std::move(type);
  made->nullable = true;
  made->can_fail = call.can_fail;
  made->ignore_nulls = call.ignore_nulls;
  made->display = call.display;
  made->context = call.context;
  return made;
}

/// True where the results of parts can be folded with the function itself: it keeps no more than its result.
bool FoldsItself(const Expr& call) {
  const std::string& name = call.function;
  if (name == "spark_min" || name == "spark_max" || name.starts_with("spark_bit_")) {
    return true;
  }
  // Sums of decimals may leave their range for a while; a try_sum remembers that it did.
  return (name == "spark_sum" || name == "spark_sum_legacy") &&
         (call.type.Is(TypeKind::kLong) || call.type.Is(TypeKind::kDouble));
}

bool IsCount(const Expr& call) { return call.function == "duck_count" || call.function == "duck_count_star"; }

/// Arguments of the merging forms: constants stay, rows' values are NULL, and the result's type comes last.
std::vector<ExprPtr> WithState(const ExprPtr& state, const Expr& call) {
  std::vector<ExprPtr> children = {state};
  for (const ExprPtr& child : call.children) {
    children.push_back(child->kind == ExprKind::kLiteral ? child : plan::MakeNull(child->type));
  }
  children.push_back(plan::MakeNull(call.type));
  return children;
}

}  // namespace

Result<AggregateStates> DescribeAggregates(const plan::LogicalPlan& node) {
  AggregateStates states;
  std::vector<ExprPtr> calls;
  const std::function<void(const ExprPtr&)> collect = [&](const ExprPtr& expr) {
    if (expr->kind == ExprKind::kAggregate) {
      for (const ExprPtr& known : calls) {
        if (plan::SameExpr(known, expr)) {
          return;
        }
      }
      calls.push_back(expr);
      return;
    }
    for (const ExprPtr& child : expr->children) {
      collect(child);
    }
  };
  for (const ExprPtr& aggregate : node.aggregates) {
    collect(aggregate);
  }
  std::vector<ExprPtr> finals;
  for (const ExprPtr& call : calls) {
    if (call->distinct) {
      return Error::Unsupported("the distinct aggregate " + call->display + " on a stream");
    }
    if (!call->order_by.empty()) {
      return Error::Unsupported("the order of rows in " + call->display + " on a stream");
    }
    const bool count = IsCount(*call);
    const bool folds = FoldsItself(*call);
    if (!count && !folds && !call->function.starts_with("spark_")) {
      return Error::Unsupported("the aggregate " + call->display + " on a stream");
    }
    plan::Attribute column;
    column.id = plan::NewAttributeId();
    column.name = "state" + std::to_string(states.columns.size());
    column.type = count ? DataType::Long() : folds ? call->type : DataType::Binary();
    column.nullable = true;
    const ExprPtr state = plan::MakeAttribute(column);
    if (count) {
      states.partial.push_back(call);
      const ExprPtr sum = Aggregate(*call, "spark_sum", {state}, DataType::Long());
      states.merge.push_back(sum);
      finals.push_back(plan::MakeCall("coalesce", {sum, plan::MakeLiteral(types::Value(0), DataType::Long())},
                                      DataType::Long(), false));
    } else if (folds) {
      states.partial.push_back(call);
      const ExprPtr fold = Aggregate(*call, call->function, {state}, call->type);
      states.merge.push_back(fold);
      finals.push_back(fold);
    } else {
      auto partial = std::make_shared<Expr>(*call);
      partial->function += "#partial";
      partial->children.push_back(plan::MakeNull(call->type));
      partial->type = DataType::Binary();
      partial->nullable = true;
      states.partial.push_back(std::move(partial));
      states.merge.push_back(Aggregate(*call, call->function + "#merge", WithState(state, *call), DataType::Binary()));
      finals.push_back(Aggregate(*call, call->function + "#final", WithState(state, *call), call->type));
    }
    states.note += (states.note.empty() ? "" : ", ") + call->function + "(";
    for (std::size_t i = 0; i < call->children.size(); ++i) {
      states.note += (i > 0 ? ", " : "") + call->children[i]->type.SimpleString();
    }
    states.note += ")";
    states.columns.push_back(std::move(column));
  }
  const std::function<ExprPtr(const ExprPtr&)> replace = [&](const ExprPtr& expr) -> ExprPtr {
    if (expr->kind == ExprKind::kAggregate) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        if (plan::SameExpr(calls[i], expr)) {
          return finals[i];
        }
      }
    }
    bool changed = false;
    std::vector<ExprPtr> children;
    for (const ExprPtr& child : expr->children) {
      children.push_back(replace(child));
      changed = changed || children.back() != child;
    }
    return changed ? plan::WithChildren(expr, std::move(children)) : expr;
  };
  for (const ExprPtr& aggregate : node.aggregates) {
    states.finals.push_back(replace(aggregate));
  }
  return states;
}

}  // namespace fleuve::operators
