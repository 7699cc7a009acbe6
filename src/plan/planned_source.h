#pragma once

/// \file
/// Tables that are plans of their own once it is known what is asked of them.

#include <vector>

#include "plan/logical_plan.h"
#include "plan/scan.h"

namespace fleuve::plan {

/// What a `PlannedSource` gives.
struct PlannedRead {
  /// An analyzed plan whose output is `columns`, in their order.
  PlanPtr plan;
  /// Positions of the filters that the source applies itself: nobody else does.
  std::vector<std::size_t> applied;
};

/// What a `TableSource` may be besides: it gives neither files nor rows.
class PlannedSource {
 public:
  virtual ~PlannedSource() = default;
  /// \param filters  conjuncts over `columns`; \param columns  one per field of the table's schema, same order.
  virtual Result<PlannedRead> PlanRead(const std::vector<ExprPtr>& filters,
                                       const std::vector<Attribute>& columns) const = 0;
};

}  // namespace fleuve::plan
