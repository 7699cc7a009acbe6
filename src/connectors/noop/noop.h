#pragma once

/// \file
/// The sink `noop`: every batch is computed and counted, nothing is kept.

#include "connectors/sink.h"

namespace fleuve::connectors::noop {

/// Adds the sink `noop`.
void RegisterNoop(ConnectorRegistry& registry);

}  // namespace fleuve::connectors::noop
