#pragma once

/// \file
/// One progress record and its two JSON forms.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace fleuve::stream {

struct SourceProgress {
  std::string description;
  std::optional<std::string> start_offset;
  std::optional<std::string> end_offset;
  std::optional<std::string> latest_offset;
  std::int64_t rows = 0;
  std::map<std::string, std::string> metrics;
};

struct Progress {
  std::string id;
  std::string run_id;
  std::optional<std::string> name;
  std::int64_t trigger_start_ms = 0;
  std::int64_t batch_id = 0;
  std::int64_t batch_duration_ms = 0;
  std::map<std::string, std::int64_t> duration_ms;
  /// Seconds since the trigger before; nullopt: the first trigger.
  std::optional<double> since_previous_s;
  /// Empty where the query has no watermark.
  std::map<std::string, std::string> event_time;
  Json::Array state_operators;
  std::vector<SourceProgress> sources;
  std::string sink_description;
  std::int64_t sink_rows = -1;
  std::vector<engine::ObservedMetrics> observed;

  /// As StreamingQueryProgress.json prints it: in listener events.
  std::string EventJson() const;
  /// As a Spark Connect server answers lastProgress and recentProgress.
  std::string WireJson() const;
};

/// `2026-11-29T21:59:42.868Z`.
std::string IsoMillis(std::int64_t ms);

}  // namespace fleuve::stream
