#pragma once

/// \file
/// The sink `memory`: rows kept in the process under the query's name as a temporary view.

#include "connectors/sink.h"

namespace fleuve::connectors::memory {

/// Adds the sink `memory`.
void RegisterMemory(ConnectorRegistry& registry);

}  // namespace fleuve::connectors::memory
