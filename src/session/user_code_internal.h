#pragma once

/// \file
/// How the Python code of a session's user runs on this server. Private to this room.

#include "python/worker.h"
#include "session/session.h"

namespace fleuve::session {

/// Processes for this session's functions: its interpreter, its py files, its folder of files.
python::WorkerSetup WorkerSetupOf(Session& session);
/// The session's limits, else the pool's.
python::WorkerLimits WorkerLimitsOf(Session& session, const python::WorkerPool& pool);

}  // namespace fleuve::session
