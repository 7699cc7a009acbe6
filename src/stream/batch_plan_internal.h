#pragma once

/// \file
/// The plan of one batch: streaming leaves replaced by what the batch holds.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "connectors/source.h"
#include "engine/engine.h"
#include "plan/logical_plan.h"
#include "stream/query.h"

namespace fleuve::stream {

/// The distinct streams of a plan in Spark's order: depth first, left to right; references to one relation share one.
std::vector<std::shared_ptr<const plan::StreamRelation>> DistinctStreams(const plan::PlanPtr& plan);

/// \param streams  as `DistinctStreams`; \param inputs  one per stream.
/// \param now_micros  what current_timestamp(), current_date() and localtimestamp() mean in this batch.
Result<plan::PlanPtr> MakeBatchPlan(const plan::PlanPtr& plan,
                                    const std::vector<std::shared_ptr<const plan::StreamRelation>>& streams,
                                    const std::vector<connectors::BatchInput>& inputs, const QueryRequest& request,
                                    std::int64_t now_micros);

/// The plan with the rows of its leaves left out: for people to look at after the batch, without what it held in
/// memory.
plan::PlanPtr WithoutRows(const plan::PlanPtr& plan);

/// Rows that each stream's leaves gave in the runs of `prepared` (plans that `MakeBatchPlan` made, then prepared; nulls
/// are left out); leaves that did not run count by `inputs[i].row_count` where nothing else is known.
std::vector<std::int64_t> CountInputRows(const std::vector<plan::PlanPtr>& prepared,
                                         const engine::RunObserver& observer,
                                         const std::vector<connectors::BatchInput>& inputs);

}  // namespace fleuve::stream
