#pragma once

/// \file
/// The watermark of a query: what each batch saw of its event-time columns, and the one value that follows from it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "engine/engine.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"

namespace fleuve::stream {

/// What one batch saw of one event-time column, in milliseconds. NULL counts as 0, as in Spark.
struct EventTimeStats {
  std::int64_t count = 0;
  std::int64_t max_ms = 0;
  std::int64_t min_ms = 0;
  double avg_ms = 0;
};

/// The node that observes a watermark's column in a batch: a kMetrics in the place of the kWatermark node `watermark`.
/// \param child  the node's input as the batch has it.
Result<plan::PlanPtr> ObserveEventTime(const plan::LogicalPlan& watermark, const plan::PlanPtr& child,
                                       const plan::AnalysisConfig& config);

/// Follows the watermarks of a query's plan. Threads: one.
///
/// Every watermark node has a value of its own: the greatest event time it has seen in this run less its delay, 0 while
/// it has seen none. The query's watermark is the smallest (or greatest) of them and never goes back; it alone is kept
/// over a restart.
class WatermarkTracker {
 public:
  /// \param policy  spark.sql.streaming.multipleWatermarkPolicy as pinned in the offsets: min or max.
  static Result<WatermarkTracker> Make(const plan::PlanPtr& plan, const std::string& policy);
  WatermarkTracker() = default;

  std::int64_t current_ms() const { return current_ms_; }
  /// The value a checkpoint (or the changelog of an adopted batch) tells: never goes back.
  void Restore(std::int64_t watermark_ms);
  /// Takes in what a batch observed (`RunObserver::metrics`).
  void Advance(const std::vector<engine::ObservedMetrics>& metrics);
  /// `eventTime` of the progress of a batch that ran with `watermark_ms`: with avg, max and min of the newest `Advance`
  /// where `with_stats`.
  std::map<std::string, std::string> EventTime(std::int64_t watermark_ms, bool with_stats) const;

 private:
  bool take_greatest_ = false;
  /// By the name of the observing node, in the plan's order.
  std::vector<std::pair<std::string, std::int64_t>> delays_ms_;
  std::map<std::string, std::int64_t> values_ms_;
  std::map<std::string, EventTimeStats> stats_;
  std::int64_t current_ms_ = 0;
};

}  // namespace fleuve::stream
