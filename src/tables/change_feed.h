#pragma once

/// \file
/// The changes of a table between two versions, as rows.

#include <optional>
#include <string>

#include "base/result.h"
#include "delta/log.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"

namespace fleuve::tables {

/// Ends of a change feed: versions or times, both inclusive.
struct ChangeBound {
  std::optional<std::int64_t> version;
  /// Milliseconds since the epoch.
  std::optional<std::int64_t> timestamp_ms;
};

/// The bounds that `startingVersion`, `startingTimestamp`, `endingVersion`, `endingTimestamp` name.
/// DELTA_NO_START_FOR_CDC_READ, DELTA_MULTIPLE_CDC_BOUNDARY, DELTA_VERSION_INVALID, DELTA_TIMESTAMP_INVALID.
Result<std::pair<ChangeBound, ChangeBound>> ChangeBoundsOf(const plan::Options& options,
                                                           const plan::AnalysisConfig& config);

/// A plan whose visible output is the table's columns, then `_change_type`, `_commit_version`, `_commit_timestamp`.
/// Errors: DELTA_MISSING_CHANGE_DATA, DELTA_INVALID_CDC_RANGE, DELTA_CDC_START_VERSION_AFTER_LATEST,
/// DELTA_TIMESTAMP_GREATER_THAN_COMMIT, DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE, ...
Result<plan::PlanPtr> ChangeFeed(const delta::DeltaLogPtr& log, const ChangeBound& start, const ChangeBound& end,
                                 const plan::AnalysisConfig& config);

}  // namespace fleuve::tables
