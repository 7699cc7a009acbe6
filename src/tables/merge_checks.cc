#include "tables/merge_checks_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;

namespace {

Result<void> CheckExpression(const ExprPtr& expr) {
  if (expr == nullptr) {
    return {};
  }
  if (plan::AnyExpr(expr, [](const plan::Expr& e) { return e.kind == plan::ExprKind::kSubquery; })) {
    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_SUBQUERY", "Subqueries are not supported in MERGE.");
  }
  if (plan::AnyExpr(expr, [](const plan::Expr& e) { return e.kind == plan::ExprKind::kAggregate; })) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_AGGREGATION_NOT_SUPPORTED",
                 "Aggregate functions are not supported in the conditions of MERGE.");
  }
  return {};
}

}  // namespace

Result<void> CheckMerge(const MergeSpec& spec, const delta::Snapshot& snapshot) {
  FLEUVE_TRY(CheckExpression(spec.condition));
  std::vector<ExprPtr> conditions{spec.condition};
  if (spec.matched.empty() && spec.not_matched.empty() && spec.not_matched_by_source.empty()) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_MERGE_MISSING_WHEN",
                 "There must be at least one WHEN clause in a MERGE statement.");
  }
  for (const auto* clauses : {&spec.matched, &spec.not_matched, &spec.not_matched_by_source}) {
    for (std::size_t i = 0; i < clauses->size(); ++i) {
      const MergeClause& clause = (*clauses)[i];
      FLEUVE_TRY(CheckExpression(clause.condition));
      conditions.push_back(clause.condition);
      if (clause.condition == nullptr && i + 1 < clauses->size()) {
        const char* condition = clauses == &spec.matched ? "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"
                                : clauses == &spec.not_matched
                                    ? "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION"
                                    : "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION";
        return Error(ErrorKind::kInvalidArgument, condition,
                     "Only the last clause of its kind may go without a condition.");
      }
      for (const Assignment& assignment : clause.assignments) {
        FLEUVE_TRY(CheckExpression(assignment.value));
      }
    }
  }
  for (const ExprPtr& condition : conditions) {
    if (condition == nullptr) {
      continue;
    }
    if (!condition->deterministic) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
                   "Non-deterministic functions are not supported in the conditions of MERGE.")
          .With("operation", "MERGE")
          .With("expression", condition->display);
    }
    if (!condition->type.Is(types::TypeKind::kBoolean) && !condition->type.Is(types::TypeKind::kVoid)) {
      const bool of_join = condition == spec.condition;
      return Error(ErrorKind::kInvalidArgument,
                   of_join ? "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE" : "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
                   "The condition " + condition->display + " of type " + condition->type.Sql() + " is not a boolean.")
          .With(of_join ? "joinCondition" : "filter", condition->display)
          .With(of_join ? "conditionType" : "type", condition->type.Sql());
    }
  }
  const std::string* append_only = snapshot.Property("delta.appendOnly");
  if ((!spec.matched.empty() || !spec.not_matched_by_source.empty()) && append_only != nullptr &&
      *append_only == "true") {
    return Error(ErrorKind::kUnsupported, "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                 "The table only takes appends: its property delta.appendOnly is true.")
        .With("config", "delta.appendOnly");
  }
  return {};
}

}  // namespace fleuve::tables
