#pragma once

/// \file
/// Parts that DELETE, UPDATE and MERGE share.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "delta/snapshot.h"
#include "delta/transaction.h"
#include "plan/logical_plan.h"
#include "tables/context.h"
#include "tables/data_files_internal.h"
#include "tables/modify.h"

namespace fleuve::tables {

/// The snapshot behind a kTable leaf.
Result<delta::SnapshotPtr> SnapshotOf(const plan::PlanPtr& target);

/// DELTA_UNSUPPORTED_SUBQUERY, DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN, INVALID_NON_DETERMINISTIC_EXPRESSIONS.
Result<void> CheckCondition(const plan::ExprPtr& condition, const std::string& statement);

/// DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN.
Error NotBoolean(const plan::Expr& condition);

/// UNSUPPORTED_EXPR_FOR_OPERATOR where an expression over single rows aggregates or looks through a window.
Result<void> CheckOfRow(const plan::ExprPtr& expr, const std::string& statement);

/// DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION where a struct, at any depth, has a field that `to` lacks or, unless
/// `may_lack_fields`, lacks one that `to` has.
Result<void> CheckStructs(const types::DataType& from, const types::DataType& to, bool may_lack_fields);

/// Drops a qualifier of `rows` before a column of it: `t.x` becomes `x`. False where the path has none.
bool DropQualifier(std::vector<std::string>* path, const plan::PlanPtr& rows);

/// What becomes of the fields of a struct that the value assigned to it lacks.
enum class MissingFields {
  kRefused,
  kNull,  ///< an evolving merge
  kKept,  ///< SET * of an evolving merge: they stay as they are
};

/// New values of the columns of `schema` after `assignments`. `old_values` has one expression per column.
/// \param unknown  the error for a column that is not there.
Result<std::vector<plan::ExprPtr>> ApplyAssignments(const types::Schema& schema,
                                                    const std::vector<plan::ExprPtr>& old_values,
                                                    const std::vector<Assignment>& assignments, MissingFields missing,
                                                    const plan::AnalysisConfig& config,
                                                    const std::function<Error(const std::string&)>& unknown);

/// Generated columns that no assignment names, computed anew over the new values (`rows` has the table's columns first;
/// what it has more is kept).
Result<plan::PlanPtr> RecomputeGenerated(const plan::PlanPtr& rows, const types::Schema& schema,
                                         const std::vector<std::string>& assigned, const plan::AnalysisConfig& config);

/// All rows of plans whose columns have the same types, in order (one plan: itself).
plan::PlanPtr UnionOf(std::vector<plan::PlanPtr> plans);

/// A condition as something that is never NULL.
plan::ExprPtr IsTrue(const plan::ExprPtr& condition);
plan::ExprPtr Not(const plan::ExprPtr& condition);

/// CAST_OVERFLOW under the name that writes give it.
Error WriteError(Error error);

/// Milliseconds as text for metrics.
std::string Millis(std::int64_t from_nanos, std::int64_t to_nanos);

/// Adds the application transaction of the settings; true: the table has it already, nothing is to be done.
Result<bool> AddAppTransaction(const TableContext& context, const delta::Snapshot& snapshot,
                               std::vector<delta::Action>* actions);

/// `num_affected_rows`.
RowsResult AffectedRows(std::int64_t count);

}  // namespace fleuve::tables
