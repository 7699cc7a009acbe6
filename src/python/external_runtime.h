#pragma once

/// \file
/// The functions of one session's user as operators of plans: plan::ExternalRuntime over worker processes.

#include <functional>
#include <memory>

#include "plan/external.h"
#include "python/worker.h"

namespace fleuve::python {

/// What a session's functions run with at the time they run.
struct RuntimeSetup {
  WorkerSetup worker;
  WorkerLimits limits;
};

/// \param setup  asked at the start of each run, from any thread, also after the session has ended.
/// \param pool  kept as long as the runtime lives.
std::shared_ptr<plan::ExternalRuntime> MakeExternalRuntime(std::shared_ptr<WorkerPool> pool,
                                                           std::function<RuntimeSetup()> setup);

}  // namespace fleuve::python
