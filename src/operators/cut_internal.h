#pragma once

/// \file
/// Cutting a streaming plan at its stateful nodes.

#include <vector>

#include "operators/stateful_operator_internal.h"

namespace fleuve::operators {

struct CutPlan {
  /// An operator's inputs come before it.
  std::vector<OperatorPtr> operators;
  /// What stands above the topmost cut.
  plan::PlanPtr top;
};

/// kUnsupported names a stateful node without an operator.
Result<CutPlan> CutAtState(const plan::PlanPtr& plan, const StatefulOptions& options);

/// The number of the operator whose rows a leaf of a fragment holds; -1: another leaf.
int OperatorOfLeaf(const plan::LogicalPlan& node);

/// The numbers of operators as Spark gives them: `order[n]` is the position in `CutPlan::operators` of operator n, the
/// topmost one first, inputs left to right.
std::vector<std::size_t> SparkOrder(const CutPlan& cut);

}  // namespace fleuve::operators
