#include <functional>

#include "operators/aggregate_states_internal.h"
#include "operators/stateful_operator_internal.h"
#include "plan/function_builder.h"

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

/// Means of doubles are kept as a sum and a count.
bool IsMeanOfDoubles(const Expr& call) {
  return call.function == "spark_avg" && call.type.Is(TypeKind::kDouble) &&
         call.children[0]->type.Is(TypeKind::kDouble);
}

bool IsCount(const Expr& call) { return call.function == "duck_count" || call.function == "duck_count_star"; }

/// `max` of spark_max.
std::string NameOf(const Expr& call) {
  return call.function.substr(call.function.starts_with("spark_") ? std::string_view("spark_").size() : 0);
}

/// sum / count, NULL where nothing was counted.
Result<ExprPtr> Quotient(const ExprPtr& sum, const ExprPtr& count) {
  static const plan::AnalysisConfig config;
  plan::FunctionCall call;
  call.name = "/";
  call.arguments = {sum, count};
  call.argument_names.resize(2);
  call.config = &config;
  FLEUVE_ASSIGN(ExprPtr quotient, plan::BuildFunction(call));
  const ExprPtr any =
      plan::MakeCall("gt", {count, plan::MakeLiteral(types::Value(0), DataType::Long())}, DataType::Boolean(), false);
  return plan::MakeCase({any, std::move(quotient)}, false, DataType::Double());
}

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
  std::vector<ExprPtr> row_finals;
  bool rows_suffice = true;
  const auto add_column = [&states](std::string name, DataType type) {
    states.columns.push_back(NewColumn(std::move(name), std::move(type)));
    return plan::MakeAttribute(states.columns.back());
  };
  const ExprPtr zero = plan::MakeLiteral(types::Value(0), DataType::Long());
  const auto or_zero = [&zero](const ExprPtr& count) {
    return plan::MakeCall("coalesce", {count, zero}, DataType::Long(), false);
  };
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
    if (count) {
      const ExprPtr state = add_column("count", DataType::Long());
      states.partial.push_back(call);
      const ExprPtr sum = Aggregate(*call, "spark_sum", {state}, DataType::Long());
      states.merge.push_back(sum);
      finals.push_back(or_zero(sum));
      row_finals.push_back(or_zero(state));
    } else if (folds) {
      const ExprPtr state = add_column(NameOf(*call), call->type);
      states.partial.push_back(call);
      const ExprPtr fold = Aggregate(*call, call->function, {state}, call->type);
      states.merge.push_back(fold);
      finals.push_back(fold);
      row_finals.push_back(state);
    } else if (IsMeanOfDoubles(*call)) {
      const ExprPtr sum = add_column("sum", DataType::Double());
      const ExprPtr number = add_column("count", DataType::Long());
      auto summed = std::make_shared<Expr>(*call);
      summed->function = "spark_sum";
      states.partial.push_back(std::move(summed));
      auto counted = std::make_shared<Expr>(*call);
      counted->function = "duck_count";
      counted->type = DataType::Long();
      states.partial.push_back(std::move(counted));
      const ExprPtr sums = Aggregate(*call, "spark_sum", {sum}, DataType::Double());
      const ExprPtr numbers = Aggregate(*call, "spark_sum", {number}, DataType::Long());
      states.merge.push_back(sums);
      states.merge.push_back(numbers);
      FLEUVE_ASSIGN(ExprPtr mean, Quotient(sums, or_zero(numbers)));
      finals.push_back(std::move(mean));
      FLEUVE_ASSIGN(mean, Quotient(sum, or_zero(number)));
      row_finals.push_back(std::move(mean));
    } else {
      const ExprPtr state = add_column(NameOf(*call), DataType::Binary());
      auto partial = std::make_shared<Expr>(*call);
      partial->function += "#partial";
      partial->children.push_back(plan::MakeNull(call->type));
      partial->type = DataType::Binary();
      partial->nullable = true;
      states.partial.push_back(std::move(partial));
      states.merge.push_back(Aggregate(*call, call->function + "#merge", WithState(state, *call), DataType::Binary()));
      finals.push_back(Aggregate(*call, call->function + "#final", WithState(state, *call), call->type));
      row_finals.push_back(nullptr);
      rows_suffice = false;
    }
    states.note += (states.note.empty() ? "" : ", ") + call->function + "(";
    for (std::size_t i = 0; i < call->children.size(); ++i) {
      states.note += (i > 0 ? ", " : "") + call->children[i]->type.SimpleString();
    }
    states.note += ")";
  }
  const auto replaced = [&calls, &node](const ExprPtr& expr, const std::vector<ExprPtr>& by) {
    const std::function<ExprPtr(const ExprPtr&)> replace = [&](const ExprPtr& part) -> ExprPtr {
      for (std::size_t i = 0; i < node.grouping.size(); ++i) {
        if (plan::SameExpr(node.grouping[i], part)) {
          plan::Attribute key = node.output[i];
          key.hidden = false;
          return plan::MakeAttribute(key);
        }
      }
      if (part->kind == ExprKind::kAggregate) {
        for (std::size_t i = 0; i < calls.size(); ++i) {
          if (plan::SameExpr(calls[i], part)) {
            return by[i];
          }
        }
      }
      bool changed = false;
      std::vector<ExprPtr> children;
      for (const ExprPtr& child : part->children) {
        children.push_back(replace(child));
        changed = changed || children.back() != child;
      }
      return changed ? plan::WithChildren(part, std::move(children)) : part;
    };
    return replace(expr);
  };
  for (const ExprPtr& aggregate : node.aggregates) {
    states.finals.push_back(replaced(aggregate, finals));
    if (rows_suffice) {
      states.row_finals.push_back(replaced(aggregate, row_finals));
    }
  }
  return states;
}

plan::PlanPtr AggregateNode(plan::PlanPtr child, std::vector<ExprPtr> grouping, std::vector<ExprPtr> aggregates,
                            std::vector<plan::Attribute> output) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kAggregate;
  node->is_streaming = child->is_streaming;
  node->children = {std::move(child)};
  node->grouping = std::move(grouping);
  node->aggregates = std::move(aggregates);
  node->output = std::move(output);
  return node;
}

std::vector<plan::Attribute> Renewed(std::vector<plan::Attribute> columns) {
  for (plan::Attribute& column : columns) {
    column.id = plan::NewAttributeId();
  }
  return columns;
}

}  // namespace fleuve::operators
