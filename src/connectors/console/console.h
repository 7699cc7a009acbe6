#pragma once

/// \file
/// The sink `console`: every batch is printed on the process's standard output.

#include "connectors/sink.h"

namespace fleuve::connectors::console {

/// Adds the sink `console`.
void RegisterConsole(ConnectorRegistry& registry);

}  // namespace fleuve::connectors::console
