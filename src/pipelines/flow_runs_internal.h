#pragma once

/// \file
/// What a run does with one dataset and with one flow. Private to this room.

#include <functional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "pipelines/checkpoints.h"
#include "pipelines/events.h"
#include "pipelines/graph.h"
#include "pipelines/resolution.h"
#include "pipelines/stage.h"

namespace fleuve::pipelines {

/// What the parts of a run share. Threads: any.
struct RunContext {
  const Graph& graph;
  const ResolvedGraph& resolved;
  Stage& stage;
  Checkpoints& checkpoints;
  Events& events;
  SourceFolder folder;
};

/// Makes the table of a dataset, or brings it to its definition. \param reset  its rows go, its flows begin anew.
/// CANNOT_UPDATE_PARTITION_COLUMNS where the table lies otherwise.
Result<void> Materialize(const RunContext& run, std::size_t dataset, bool reset);
/// The view of the catalog of a persisted view.
Result<void> PublishView(const RunContext& run, std::size_t dataset);

/// One try of a flow, to its end. The details of what it did go into `details`.
/// \param say  tells of `PLANNING`, `STARTING`, `RUNNING`.
Result<void> RunFlow(const RunContext& run, std::size_t flow, const std::function<void(const char* state)>& say,
                     Json* details);

}  // namespace fleuve::pipelines
