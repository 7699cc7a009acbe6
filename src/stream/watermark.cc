#include "stream/watermark.h"

#include <algorithm>

#include "base/bytes.h"
#include "plan/call_function.h"
#include "plan/event_time.h"
#include "stream/progress_internal.h"

namespace fleuve::stream {

namespace {

using plan::ExprPtr;

/// Names that the user's observe() never sees.
constexpr const char* kNamePrefix = "fleuve.eventTime.";

std::string NameOf(const plan::LogicalPlan& watermark) {
  return kNamePrefix + std::to_string(watermark.event_time.value);
}

}  // namespace

Result<plan::PlanPtr> ObserveEventTime(const plan::LogicalPlan& watermark, const plan::PlanPtr& child,
                                       const plan::AnalysisConfig& config) {
  const auto column = std::find_if(child->output.begin(), child->output.end(), [&](const plan::Attribute& attribute) {
    return attribute.id == watermark.event_time;
  });
  if (column == child->output.end()) {
    return Error::Internal("the event-time column is not among the columns below its watermark");
  }
  ExprPtr time = plan::MakeAttribute(*column);
  if (time->type.Is(types::TypeKind::kStruct)) {
    time = plan::MakeGetField(time, 1);
  }
  FLEUVE_ASSIGN(ExprPtr millis, plan::CallFunction("unix_millis", {time}, config));
  const ExprPtr zero = plan::MakeLiteral(types::Value(std::int64_t{0}), types::DataType::Long());
  FLEUVE_ASSIGN(millis, plan::CallFunction("coalesce", {millis, zero}, config));
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kMetrics;
  node->name = NameOf(watermark);
  node->event_time = watermark.event_time;
  node->output = watermark.output;
  node->children = {child};
  const ExprPtr one = plan::MakeLiteral(types::Value(1), types::DataType::Int());
  for (const auto& [function, argument] :
       {std::pair{"count", one}, std::pair{"max", millis}, std::pair{"min", millis}, std::pair{"avg", millis}}) {
    FLEUVE_ASSIGN(ExprPtr made, plan::CallFunction(function, {argument}, config));
    node->exprs.push_back(std::move(made));
  }
  return plan::PlanPtr(std::move(node));
}

Result<WatermarkTracker> WatermarkTracker::Make(const plan::PlanPtr& plan, const std::string& policy) {
  WatermarkTracker tracker;
  const std::string known = AsciiLower(policy);
  if (known != "min" && known != "max") {
    return Error(ErrorKind::kInvalidArgument, "",
                 "Invalid value for 'spark.sql.streaming.multipleWatermarkPolicy'. Valid values are 'min' and 'max'")
        .Family(ErrorFamily::kIllegalArgument);
  }
  tracker.take_greatest_ = known == "max";
  for (const plan::LogicalPlan* node : plan::WatermarkNodes(plan)) {
    std::string name = NameOf(*node);
    const bool seen = std::any_of(tracker.delays_ms_.begin(), tracker.delays_ms_.end(),
                                  [&](const auto& entry) { return entry.first == name; });
    if (!seen) {
      tracker.delays_ms_.emplace_back(std::move(name), node->delay_micros / 1000);
    }
  }
  return tracker;
}

void WatermarkTracker::Restore(std::int64_t watermark_ms) { current_ms_ = std::max(current_ms_, watermark_ms); }

void WatermarkTracker::Advance(const std::vector<engine::ObservedMetrics>& metrics) {
  stats_.clear();
  if (delays_ms_.empty()) {
    return;
  }
  for (const auto& observed : metrics) {
    if (!observed.name.starts_with(kNamePrefix) || observed.row.size() != 4 || observed.row[0].is_null() ||
        observed.row[0].integer() == 0) {
      continue;
    }
    EventTimeStats& stats = stats_[observed.name];
    const std::int64_t count = observed.row[0].integer();
    const std::int64_t max_ms = observed.row[1].integer();
    stats.max_ms = stats.count == 0 ? max_ms : std::max(stats.max_ms, max_ms);
    // A sink may run a part of the batch or all of it several times: the fullest look tells.
    if (count > stats.count) {
      stats.count = count;
      stats.min_ms = observed.row[2].integer();
      stats.avg_ms = observed.row[3].real();
    }
  }
  std::optional<std::int64_t> chosen;
  for (const auto& [name, delay_ms] : delays_ms_) {
    const auto seen = stats_.find(name);
    if (seen != stats_.end()) {
      const std::int64_t value = seen->second.max_ms - delay_ms;
      const auto [at, is_new] = values_ms_.emplace(name, value);
      if (!is_new) {
        at->second = std::max(at->second, value);
      }
    } else {
      values_ms_.emplace(name, 0);
    }
    const std::int64_t value = values_ms_.at(name);
    chosen = !chosen ? value : take_greatest_ ? std::max(*chosen, value) : std::min(*chosen, value);
  }
  Restore(*chosen);
}

std::map<std::string, std::string> WatermarkTracker::EventTime(std::int64_t watermark_ms, bool with_stats) const {
  std::map<std::string, std::string> out;
  if (delays_ms_.empty()) {
    return out;
  }
  out["watermark"] = IsoMillis(watermark_ms);
  if (!with_stats) {
    return out;
  }
  for (const auto& [name, delay_ms] : delays_ms_) {
    const auto seen = stats_.find(name);
    if (seen != stats_.end()) {
      out["max"] = IsoMillis(seen->second.max_ms);
      out["min"] = IsoMillis(seen->second.min_ms);
      out["avg"] = IsoMillis(static_cast<std::int64_t>(seen->second.avg_ms));
      break;
    }
  }
  return out;
}

}  // namespace fleuve::stream
