#pragma once

/// \file
/// Delta tables as streams: append-only source and exactly-once sink.

#include "connectors/sink.h"
#include "delta/log.h"

namespace fleuve::connectors::delta {

/// Adds the source and the sink `delta`. \param logs  shared with every other reader and writer of the process.
void RegisterDelta(ConnectorRegistry& registry, std::shared_ptr<fleuve::delta::LogRegistry> logs);

}  // namespace fleuve::connectors::delta
