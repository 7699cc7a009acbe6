#pragma once

/// \file
/// window() and session_window(): expressions that change rows, made into plan nodes below the one that holds them.

#include <optional>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"

namespace fleuve::plan {

/// Replaces every call of `spark_window` that is still open (its index is -1) by a column that a projection below
/// computes: rows without a time are left out, a sliding window gives one row per window. In batch plans also
/// `spark_session_window` among the keys of an aggregate. Errors: kUnsupported where such a call stands elsewhere; two
/// different windows in one node, as Spark says.
Result<PlanPtr> ResolveTimeWindows(const PlanPtr& plan);

/// The window among the keys of an aggregate, as SQL sees it: a column `window` (or `session_window`) of the input.
struct GroupingWindow {
  ExprPtr mark;
  Attribute column;
};
/// Puts the only window among `grouping` into `input`; nullopt where there is none.
/// The session of a stream's row is that of the row alone: its operator merges them.
std::optional<GroupingWindow> PlaceGroupingWindow(PlanPtr& input, std::vector<ExprPtr>& grouping);
/// `expr` with the column in place of the window's calls.
ExprPtr WithGroupingWindow(const ExprPtr& expr, const GroupingWindow& window);

}  // namespace fleuve::plan
