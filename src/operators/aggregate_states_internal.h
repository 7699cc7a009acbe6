#pragma once

/// \file
/// Every aggregate call as three: partial (rows to a state column), merge (state columns to one), final (a state to the
/// result).

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"

namespace fleuve::operators {

/// The calls of one kAggregate node.
struct AggregateStates {
  /// The state columns: one per call, two for means of doubles; calls that stand twice share theirs.
  std::vector<plan::Attribute> columns;
  /// kAggregate expressions over the node's input, one per column.
  std::vector<plan::ExprPtr> partial;
  /// kAggregate expressions over `columns`: states in the order in which they were made, to one state.
  std::vector<plan::ExprPtr> merge;
  /// The node's `aggregates` with every call replaced by an aggregate over `columns` that gives its result from the
  /// states of a group (one or many).
  std::vector<plan::ExprPtr> finals;
  /// The same as expressions over one merged row of `columns`; empty where a call's state can only be read by an
  /// aggregate.
  std::vector<plan::ExprPtr> row_finals;
  /// Names the calls (`spark_sum(bigint)`): must not change between runs of a query.
  std::string note;
};

/// kUnsupported names a call that has no states (DISTINCT, an order of its rows).
Result<AggregateStates> DescribeAggregates(const plan::LogicalPlan& node);

/// A kAggregate node.
plan::PlanPtr AggregateNode(plan::PlanPtr child, std::vector<plan::ExprPtr> grouping,
                            std::vector<plan::ExprPtr> aggregates, std::vector<plan::Attribute> output);
/// The columns under new ids: what a merging run of them gives.
std::vector<plan::Attribute> Renewed(std::vector<plan::Attribute> columns);

}  // namespace fleuve::operators
