#pragma once

/// \file
/// Streaming tables and materialized views outside a pipeline: each is a graph of one dataset. Private to this room.

#include "base/result.h"
#include "session/operation.h"
#include "session/session.h"

namespace fleuve::pb {
class Command;
}

namespace fleuve::pipelines {

/// CREATE ... STREAMING TABLE, CREATE ... MATERIALIZED VIEW, REFRESH of both. They run before the statement ends; the
/// definition stays with the table, its state below the warehouse.
Result<void> RunDatasetStatement(session::Session& session, const pb::Command& command,
                                 const session::OperationPtr& operation);

}  // namespace fleuve::pipelines
