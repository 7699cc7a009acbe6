#include "base/bytes.h"
#include "tables/merge_checks_internal.h"
#include "tables/modify_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::TypeKind;

namespace {

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

/// \param where  `search condition`, `DELETE condition` ...
Result<void> CheckMergeCondition(const ExprPtr& condition, const std::string& where) {
  const std::string operation = where + " of MERGE operation";
  if (plan::AnyExpr(condition, [](const plan::Expr& e) { return e.kind == plan::ExprKind::kSubquery; })) {
    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_SUBQUERY",
                 "Subqueries are not supported in the " + operation + ".")
        .With("operation", operation)
        .With("cond", condition->display);
  }
  if (plan::AnyExpr(condition, [](const plan::Expr& e) { return e.kind == plan::ExprKind::kAggregate; })) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_AGGREGATION_NOT_SUPPORTED",
                 "Aggregate functions are not supported in the " + operation + ".")
        .With("operation", operation)
        .With("predicate", "(condition = " + condition->display + ")");
  }
  if (!condition->deterministic) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
                 "Non-deterministic functions are not supported in the " + operation + ".")
        .With("operation", operation)
        .With("expression", "(condition = " + condition->display + ").");
  }
  return CheckOfRow(condition, "MERGE");
}

/// \param of_pairs  the clause is of rows that match: then a type that no cast widens to a boolean is named so.
Result<void> CheckClauseType(const plan::Expr& condition, bool of_pairs) {
  if (condition.type.Is(TypeKind::kBoolean)) {
    return {};
  }
  if (!of_pairs || condition.type.IsString() || condition.type.Is(TypeKind::kVoid)) {
    return NotBoolean(condition);
  }
  return Error(ErrorKind::kInvalidArgument, "CANNOT_UP_CAST_DATATYPE",
               "The condition " + condition.display + " of type " + condition.type.Sql() + " is not a boolean.")
      .With("expression", condition.display)
      .With("sourceType", Quoted(condition.type.Sql()))
      .With("targetType", Quoted("BOOLEAN"));
}

}  // namespace

const char* ActionOf(const MergeClause& clause) {
  switch (clause.kind) {
    case MergeClause::Kind::kUpdate:
      return "UPDATE";
    case MergeClause::Kind::kDelete:
      return "DELETE";
    case MergeClause::Kind::kInsert:
      return "INSERT";
  }
  return "";
}

Error UnresolvedInMerge(const std::string& name, const std::string& where, const plan::LogicalPlan& rows) {
  std::string columns;
  for (const plan::Attribute& attribute : rows.output) {
    if (!attribute.hidden) {
      columns += (columns.empty() ? "" : ", ") +
                 (attribute.qualifier.empty() ? "" : Join(attribute.qualifier, ".") + ".") + attribute.name;
    }
  }
  return Error(ErrorKind::kInvalidArgument, "DELTA_MERGE_UNRESOLVED_EXPRESSION",
               "Cannot resolve " + name + " in " + where + " given " + columns + ".")
      .With("sqlExpr", name)
      .With("clause", where)
      .With("cols", columns);
}

Result<void> CheckMerge(const MergeSpec& spec, const delta::Snapshot& snapshot) {
  FLEUVE_TRY(CheckMergeCondition(spec.condition, "search condition"));
  if (spec.matched.empty() && spec.not_matched.empty() && spec.not_matched_by_source.empty()) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_MERGE_MISSING_WHEN",
                 "There must be at least one WHEN clause in a MERGE statement.");
  }
  for (const auto* clauses : {&spec.matched, &spec.not_matched, &spec.not_matched_by_source}) {
    for (std::size_t i = 0; i < clauses->size(); ++i) {
      const MergeClause& clause = (*clauses)[i];
      if (clause.condition != nullptr) {
        FLEUVE_TRY(CheckMergeCondition(clause.condition, std::string(ActionOf(clause)) + " condition"));
      } else if (i + 1 < clauses->size()) {
        const char* condition = clauses == &spec.matched ? "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"
                                : clauses == &spec.not_matched
                                    ? "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION"
                                    : "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION";
        return Error(ErrorKind::kInvalidArgument, condition,
                     "Only the last clause of its kind may go without a condition.");
      }
      for (const Assignment& assignment : clause.assignments) {
        FLEUVE_TRY(CheckOfRow(assignment.value, "MERGE"));
      }
    }
  }
  if (!spec.condition->type.Is(TypeKind::kBoolean)) {
    return Error(ErrorKind::kInvalidArgument, "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
                 "The condition " + spec.condition->display + " of type " + spec.condition->type.Sql() +
                     " is not a boolean.")
        .With("joinCondition", Quoted(spec.condition->display))
        .With("conditionType", Quoted(spec.condition->type.Sql()));
  }
  for (const auto* clauses : {&spec.matched, &spec.not_matched, &spec.not_matched_by_source}) {
    for (const MergeClause& clause : *clauses) {
      if (clause.condition != nullptr) {
        FLEUVE_TRY(CheckClauseType(*clause.condition, clauses != &spec.not_matched));
      }
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
