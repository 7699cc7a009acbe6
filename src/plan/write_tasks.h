#pragma once

/// \file
/// Into how many files a plan's rows go when they are written.
///
/// Spark runs a plan in tasks, and each task writes files of its own. Here the rows come in one stream; where the plan
/// says into how many parts they shall go (`range` with a number of partitions, `repartition`, `coalesce`, a union),
/// the number of each row's part is computed beside it, and the writer takes it for the task. All else is one task.

#include "plan/logical_plan.h"
#include "plan/resolver.h"

namespace fleuve::plan {

struct TaskedPlan {
  /// The plan given; where `tasks` is above 1, with one more output column at the end: a BIGINT that is never NULL, the
  /// task of the row, from 0.
  PlanPtr plan;
  std::int64_t tasks = 1;
};

/// To be called before `Prepare`, on an analyzed batch plan. Reads `count` of kRange (0 = not said), kRepartition (0 =
/// not said; `exprs` the columns whose hash decides; without `shuffle` neighbours are put together).
Result<TaskedPlan> SpreadOverTasks(const PlanPtr& plan, const AnalysisConfig& config);

}  // namespace fleuve::plan
