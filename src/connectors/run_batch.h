#pragma once

/// \file
/// How sinks run the plan of a batch.

#include <memory>

#include "columnar/record_batch.h"
#include "connectors/sink.h"

namespace fleuve::connectors {

/// `plan` (the batch's own, or what a sink put on top of it) made ready for the engine, and reported.
Result<plan::PlanPtr> PrepareBatch(const SinkBatch& batch, const plan::PlanPtr& plan);
/// The same, run: its rows while they come.
Result<std::unique_ptr<columnar::BatchReader>> RunBatch(const SinkBatch& batch, const plan::PlanPtr& plan);

}  // namespace fleuve::connectors
