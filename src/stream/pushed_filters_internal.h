#pragma once

/// \file
/// Rows that a text reader of Spark leaves out before it counts them: simple filters over the columns of JSON and CSV
/// files are part of reading there, so the input rows of a batch are those that passed.

#include <string>

#include "plan/logical_plan.h"

namespace fleuve::stream {

/// Begins the name of a node that counts the rows of stream leaf `index` after such filters; the number follows.
inline constexpr const char* kPassedRowsPrefix = "fleuve.passedRows.";
/// Such a node over `below`.
plan::PlanPtr CountRows(plan::PlanPtr below, std::size_t index);

/// `filter` (a kFilter of a batch's plan) with a counting node above the part of its condition that Spark hands to the
/// reader of the leaf below; null where there is no such part, or another leaf below.
/// \param leaf_index  the number of a stream leaf, -1 for another node.
plan::PlanPtr CountPassedRows(const plan::PlanPtr& filter, int (*leaf_index)(const plan::LogicalPlan& node));

}  // namespace fleuve::stream
