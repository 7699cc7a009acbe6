#pragma once

/// \file
/// The functions of one session's user as operators of plans: plan::ExternalRuntime over worker processes.

#include <memory>

#include "plan/external.h"
#include "python/worker.h"

namespace fleuve::python {

/// What the functions of a session, or of a streaming query that may outlive it, run with.
struct RuntimeSetup {
  WorkerSetup worker;
  WorkerLimits limits;
};

/// \param pool  kept as long as the runtime lives.
std::shared_ptr<plan::ExternalRuntime> MakeExternalRuntime(std::shared_ptr<WorkerPool> pool, RuntimeSetup setup);

}  // namespace fleuve::python
