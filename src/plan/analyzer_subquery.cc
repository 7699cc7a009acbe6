#include "plan/analyzer_internal.h"

namespace fleuve::plan {

using types::DataType;

namespace {

/// The columns of the query around it that a subquery uses, in the order of use: `x, y, x`.
std::string OuterNames(const PlanPtr& plan) {
  std::string names;
  VisitPlan(plan, [&names](const LogicalPlan& node) {
    for (const ExprPtr& expr : ExpressionsOf(node)) {
      VisitExpr(expr, [&names](const Expr& part) {
        if (part.kind == ExprKind::kAttribute && part.is_outer) {
          names += (names.empty() ? "" : ", ") + part.attribute.name;
        }
      });
    }
  });
  return names;
}

}  // namespace

Result<ExprPtr> Analyzer::Subquery(SubqueryKind kind, const sc::Relation& relation, std::vector<ExprPtr> values,
                                   const Scope& scope) {
  if (!scope.lambdas.empty()) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.HIGHER_ORDER_FUNCTION",
                 "Unsupported subquery expression: Subquery expressions are not supported within higher-order "
                 "functions. Please remove all subquery expressions from higher-order functions and then try the query "
                 "again.");
  }
  outer_scopes_.push_back(&scope);
  Result<PlanPtr> plan = Relation(relation);
  outer_scopes_.pop_back();
  if (!plan.ok()) {
    return std::move(plan).error();
  }
  return SubqueryOf(kind, WithoutHidden(*plan), std::move(values));
}

Result<ExprPtr> Analyzer::SubqueryOf(SubqueryKind kind, PlanPtr plan, std::vector<ExprPtr> values) {
  auto made = std::make_shared<Expr>();
  made->kind = ExprKind::kSubquery;
  made->subquery_kind = kind;
  // More than one row fails while the query runs.
  made->can_fail = kind == SubqueryKind::kScalar;
  if (plan->is_streaming) {
    return Error::Unsupported("a subquery over a stream");
  }
  switch (kind) {
    case SubqueryKind::kScalar:
      if (plan->output.size() != 1) {
        return Error(ErrorKind::kInvalidArgument,
                     "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN",
                     "Invalid subquery: Scalar subquery must return only one column, but found " +
                         std::to_string(plan->output.size()) + ".")
            .With("number", std::to_string(plan->output.size()));
      }
      made->type = plan->output.front().type;
      made->display = "scalarsubquery(" + OuterNames(plan) + ")";
      break;
    case SubqueryKind::kExists:
      made->type = DataType::Boolean();
      made->nullable = false;
      made->display = "exists(" + OuterNames(plan) + ")";
      break;
    case SubqueryKind::kIn: {
      if (values.size() == 1 && plan->output.size() > 1 && values.front()->type.Is(types::TypeKind::kStruct) &&
          values.front()->type.fields().size() == plan->output.size()) {
        const ExprPtr record = values.front();
        values.clear();
        for (std::size_t i = 0; i < plan->output.size(); ++i) {
          values.push_back(MakeGetField(record, static_cast<int>(i)));
        }
      }
      if (values.size() != plan->output.size()) {
        return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH",
                     "The number of columns in the left hand side of an IN subquery does not match the number of "
                     "columns in the output of subquery.");
      }
      std::vector<DataType> wanted;
      bool nullable = false;
      std::string shown;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::optional<DataType> wider = WiderType(values[i]->type, plan->output[i].type, config_);
        if (!wider) {
          return Error(
              ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH",
              "The data type of one or more elements in the left hand side of an IN subquery is not compatible "
              "with the data type of the output of the subquery.");
        }
        nullable = nullable || values[i]->nullable || plan->output[i].nullable;
        shown += (shown.empty() ? "" : ", ") + values[i]->display;
        FLEUVE_ASSIGN(values[i], MakeCast(values[i], *wider, config_));
        wanted.push_back(*wider);
      }
      FLEUVE_ASSIGN(plan, CastColumns(plan, wanted));
      made->type = DataType::Boolean();
      made->nullable = nullable;
      made->display = "(" + (values.size() == 1 ? shown : "named_struct(" + shown + ")") + " IN (listquery(" +
                      OuterNames(plan) + ")))";
      for (const ExprPtr& value : values) {
        made->can_fail = made->can_fail || value->can_fail;
        made->deterministic = made->deterministic && value->deterministic;
      }
      made->children = std::move(values);
      break;
    }
  }
  made->subquery = std::move(plan);
  return made;
}

Result<ExprPtr> Analyzer::WithExistence(const ExprPtr& expr, bool is_condition) {
  const auto is_in = [](const Expr& node) {
    return node.kind == ExprKind::kSubquery && node.subquery_kind == SubqueryKind::kIn;
  };
  if (!AnyExpr(expr, is_in)) {
    return expr;
  }
  if (is_condition) {
    if (is_in(*expr) || (expr->kind == ExprKind::kCall && expr->function == "not" && is_in(*expr->children.front()))) {
      return expr;
    }
    if (expr->kind == ExprKind::kCall && expr->function == "and") {
      std::vector<ExprPtr> children = expr->children;
      for (ExprPtr& child : children) {
        FLEUVE_ASSIGN(child, WithExistence(child, true));
      }
      return WithChildren(expr, std::move(children));
    }
  }
  return RewriteExpr(expr, [&](const ExprPtr& node) -> ExprPtr {
    if (!is_in(*node) || !node->nullable) {
      return nullptr;
    }
    return WithDisplay(
        MakeCall("coalesce", {node, MakeLiteral(types::Value(false), DataType::Boolean())}, DataType::Boolean(), false),
        node->display);
  });
}

}  // namespace fleuve::plan
