#pragma once

/// \file
/// Which event time a watermark of a query takes from one of its sources.

#include <optional>

#include "connectors/sink.h"
#include "plan/logical_plan.h"

namespace fleuve::stream {

/// The column of the watermark above `stream`, followed down to the leaf that reads it; nullopt where no watermark
/// stands above it. `refusal` is set where the column is no function of this leaf alone.
std::optional<connectors::EventTime> EventTimeOf(const plan::PlanPtr& plan, const plan::StreamRelation* stream);

}  // namespace fleuve::stream
