#pragma once

/// \file
/// One run of a graph: tables are made ready, then flows run, each as soon as what it reads has been written.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "pipelines/checkpoints.h"
#include "pipelines/events.h"
#include "pipelines/graph.h"
#include "pipelines/resolution.h"
#include "pipelines/stage.h"

namespace fleuve::pipelines {

/// What a client asks for.
struct RunRequest {
  /// Names as written; both empty: everything is refreshed.
  std::vector<std::string> refresh;
  std::vector<std::string> full_refresh;
  bool full_refresh_all = false;
  /// Only the checks.
  bool dry = false;
  std::string storage;
  /// Said before anything else.
  std::vector<std::string> warnings;
};

/// Runs a graph to its end. The error is that of the checks, or of the first flow that failed for good; other flows
/// that do not depend on it have run. \param operation  gets the events; its token ends the run. Threads: the caller's,
/// and one per running flow.
Result<void> RunGraph(Graph graph, const RunRequest& request, session::Session& session,
                      const session::OperationPtr& operation, const CancellationTokenPtr& token);

}  // namespace fleuve::pipelines
