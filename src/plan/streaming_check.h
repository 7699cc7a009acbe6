#pragma once

/// \file
/// Spark's rules for plans with streams in them.

#include <string>

#include "base/result.h"
#include "plan/logical_plan.h"

namespace fleuve::plan {

struct StreamingRules {
  /// append, update or complete.
  std::string output_mode = "append";
  /// spark.sql.streaming.statefulOperator.checkCorrectness.enabled: refuses stateful operators over one that may give
  /// late rows.
  bool check_correctness = true;
  /// spark.sql.streaming.statefulOperator.allowMultiple: with false late rows and evictions follow one watermark (so an
  /// operator above another one drops what comes from there at the watermark), and watermarks may be redefined.
  bool allow_multiple = true;
};

/// Refuses by name what Spark refuses of an analyzed plan before a query starts: conditions
/// STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION, NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING and those without a name of
/// their own; what this build does not run on a stream is kUnsupported.
Result<void> CheckStreaming(const PlanPtr& plan, const StreamingRules& rules);

/// What Spark refuses only when the first batch is planned, so that the query fails: two watermarks over one another,
/// two event times in the rows of one stateful operator, joins of streams without an equality, aggregations that append
/// without a watermark.
Result<void> CheckStreamingBatch(const PlanPtr& plan, const StreamingRules& rules);

/// The plan of a query with its filters below its stateful nodes and watermarks where they may be (those that ask for
/// the event time stay above its watermark), and without rows of streams that an inner join could not use for a NULL.
Result<PlanPtr> PushStreamingFilters(const PlanPtr& plan);

/// INTERSECT and EXCEPT of a stream and a table (checked by `CheckStreaming`) as what Spark makes of them: a join with
/// the table under an aggregation over all columns.
PlanPtr ReplaceStreamingSets(const PlanPtr& plan);

}  // namespace fleuve::plan
