#pragma once

/// \file
/// AUTO CDC: what a flow of change events makes of its target. Private to this room.

#include <string>
#include <vector>

#include "base/result.h"
#include "pipelines/graph.h"
#include "session/workbench.h"

namespace fleuve::pipelines {

/// Columns of `ChangeEvents` behind those of the source: the order of an event, and what it does.
inline constexpr const char* kSequenceColumn = "__fleuve_sequence";
inline constexpr const char* kDeleteColumn = "__fleuve_delete";
inline constexpr const char* kTruncateColumn = "__fleuve_truncate";

/// The events with those columns. `rules.sequence` is set.
std::shared_ptr<const spark::connect::Relation> ChangeEvents(const ChangeRules& rules,
                                                             const spark::connect::Relation& events);

/// The columns of the target: those selected, in the order of the source, then the bounds of SCD type 2. Checks the
/// rules against the source (AUTOCDC_*). \param events  the relation that gives the events, \param source  its columns.
Result<types::Schema> ChangeTargetSchema(const ChangeRules& rules, const spark::connect::Relation& events,
                                         const types::Schema& source, session::Workbench& place,
                                         session::NameScope* names);

struct RunContext;
/// Takes the batches of such a flow into its target.
Result<std::shared_ptr<connectors::SinkProvider>> MakeChangeSink(const RunContext& run, std::size_t flow);

}  // namespace fleuve::pipelines
