#pragma once

/// \file
/// DELETE, UPDATE, MERGE: rows change by writing files anew.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"
#include "tables/context.h"

namespace fleuve::tables {

/// Metrics row of a DELETE or UPDATE: `num_affected_rows`.
/// \param target  the kTable leaf over the table's snapshot that `condition` refers to. \param condition  null: all
/// rows.
Result<RowsResult> DeleteFrom(const TableContext& context, const TableRef& table, const plan::PlanPtr& target,
                              const plan::ExprPtr& condition);

/// TRUNCATE TABLE: as a DELETE of all rows, under its own name in the history.
Result<void> TruncateTable(const TableContext& context, const TableRef& table, const plan::PlanPtr& target);

/// `path` names a column or a nested field; `value` is over `target`, not yet cast.
struct Assignment {
  std::vector<std::string> path;
  plan::ExprPtr value;
};
Result<RowsResult> UpdateTable(const TableContext& context, const TableRef& table, const plan::PlanPtr& target,
                               const std::vector<Assignment>& assignments, const plan::ExprPtr& condition);

struct MergeClause {
  enum class Kind { kUpdate, kDelete, kInsert };
  Kind kind = Kind::kUpdate;
  /// Over target and source (matched), source (not matched), target (not matched by source); null: always.
  plan::ExprPtr condition;
  /// SET * / INSERT *.
  bool star = false;
  std::vector<Assignment> assignments;
};
/// `UPDATE`, `DELETE` or `INSERT`.
const char* ActionOf(const MergeClause& clause);

struct MergeSpec {
  plan::PlanPtr target;
  plan::PlanPtr source;
  plan::ExprPtr condition;
  std::vector<MergeClause> matched;
  std::vector<MergeClause> not_matched;
  std::vector<MergeClause> not_matched_by_source;
  bool schema_evolution = false;
};
/// DELTA_MERGE_UNRESOLVED_EXPRESSION. \param where  `search condition`, `UPDATE clause`, `DELETE condition` ...
/// \param rows  has the columns that could have been meant.
Error UnresolvedInMerge(const std::string& name, const std::string& where, const plan::LogicalPlan& rows);
/// `num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows`.
Result<RowsResult> MergeInto(const TableContext& context, const TableRef& table, const MergeSpec& spec);

}  // namespace fleuve::tables
