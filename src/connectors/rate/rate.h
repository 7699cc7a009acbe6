#pragma once

/// \file
/// The sources `rate` (rows by the clock) and `rate-micro-batch` (the same rows in every run), for tests and
/// measurements.

#include "base/clock.h"
#include "connectors/sink.h"

namespace fleuve::connectors::rate {

/// Adds the sources `rate` and `rate-micro-batch`.
void RegisterRate(ConnectorRegistry& registry, Clock* clock = Clock::System());

}  // namespace fleuve::connectors::rate
