#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/json.h"
#include "stream/progress_internal.h"
#include "types/value.h"

namespace fleuve::stream {

namespace {

Json ValueToJson(const types::Value& value, const types::DataType& type) {
  using types::TypeKind;
  if (value.is_null()) {
    return nullptr;
  }
  switch (type.kind()) {
    case TypeKind::kBoolean:
      return value.boolean();
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      return value.integer();
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return std::isfinite(value.real()) ? Json(value.real()) : Json(JavaDoubleToString(value.real()));
    case TypeKind::kDecimal: {
      auto parsed = Json::Parse(types::DecimalToString(value.decimal(), type.scale()));
      return parsed.ok() ? *std::move(parsed) : Json(types::DecimalToString(value.decimal(), type.scale()));
    }
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return value.text();
    case TypeKind::kBinary:
      return Base64Encode(value.text());
    case TypeKind::kDate:
      return types::DateToString(value.integer());
    case TypeKind::kTimestamp: {
      auto text = types::TimestampToString(value.integer(), "UTC");
      return text.ok() ? Json(*text) : Json(value.integer());
    }
    case TypeKind::kTimestampNtz:
      return types::TimestampNtzToString(value.integer());
    case TypeKind::kArray: {
      Json::Array items;
      for (const auto& item : value.list()) {
        items.push_back(ValueToJson(item, type.element()));
      }
      return items;
    }
    case TypeKind::kStruct: {
      Json::Object fields;
      const auto& list = value.list();
      for (std::size_t i = 0; i < type.fields().size() && i < list.size(); ++i) {
        fields.emplace_back(type.fields()[i].name, ValueToJson(list[i], type.fields()[i].type));
      }
      return fields;
    }
    case TypeKind::kMap: {
      const bool text_keys = type.key().IsString();
      Json::Object fields;
      Json::Array entries;
      for (const auto& entry : value.list()) {
        Json item = ValueToJson(entry.list()[1], type.value());
        if (text_keys) {
          fields.emplace_back(entry.list()[0].text(), std::move(item));
        } else {
          Json pair;
          pair.Set("key", ValueToJson(entry.list()[0], type.key())).Set("value", std::move(item));
          entries.push_back(std::move(pair));
        }
      }
      return text_keys ? Json(std::move(fields)) : Json(std::move(entries));
    }
    default:
      return value.integer();
  }
}

/// A rate as Spark's events have it: one decimal, half up; no value where it is none.
std::optional<double> Rounded(double rate) {
  if (!std::isfinite(rate)) {
    return std::nullopt;
  }
  return std::floor(rate * 10 + 0.5) / 10;
}

Json OffsetAsJson(const std::optional<std::string>& offset) {
  if (!offset) {
    return nullptr;
  }
  auto parsed = Json::Parse(*offset);
  return parsed.ok() ? *std::move(parsed) : Json(*offset);
}

Json OffsetAsText(const std::optional<std::string>& offset) { return offset ? Json(*offset) : Json(nullptr); }

Json Durations(const std::map<std::string, std::int64_t>& durations) {
  Json::Object out;
  for (const auto& [key, value] : durations) {
    out.emplace_back(key, value);
  }
  return out;
}

Json StringMap(const std::map<std::string, std::string>& map) {
  Json::Object out;
  for (const auto& [key, value] : map) {
    out.emplace_back(key, value);
  }
  return out;
}

double InputRate(const Progress& progress, std::int64_t rows) {
  if (!progress.since_previous_s || *progress.since_previous_s <= 0) {
    return 0.0;
  }
  return static_cast<double>(rows) / *progress.since_previous_s;
}

double ProcessedRate(const Progress& progress, std::int64_t rows) {
  return static_cast<double>(rows) /
         (static_cast<double>(std::max<std::int64_t>(1, progress.batch_duration_ms)) / 1000);
}

}  // namespace

std::string IsoMillis(std::int64_t ms) {
  const std::int64_t days = ms >= 0 ? ms / 86400000 : (ms - 86399999) / 86400000;
  std::int64_t rest = ms - days * 86400000;
  char time[24];
  std::snprintf(time, sizeof(time), "T%02d:%02d:%02d.%03dZ", static_cast<int>(rest / 3600000),
                static_cast<int>(rest / 60000 % 60), static_cast<int>(rest / 1000 % 60), static_cast<int>(rest % 1000));
  return types::DateToString(days) + time;
}

std::string Progress::EventJson() const {
  std::int64_t rows = 0;
  double input_rate = 0;
  double processed_rate = 0;
  for (const auto& source : sources) {
    rows += source.rows;
    input_rate += InputRate(*this, source.rows);
    processed_rate += ProcessedRate(*this, source.rows);
  }
  Json out;
  out.Set("id", id).Set("runId", run_id).Set("name", name ? Json(*name) : Json(nullptr));
  out.Set("timestamp", IsoMillis(trigger_start_ms)).Set("batchId", batch_id).Set("batchDuration", batch_duration_ms);
  out.Set("numInputRows", rows);
  out.Set("inputRowsPerSecond", Rounded(input_rate).value_or(0.0));
  out.Set("processedRowsPerSecond", Rounded(processed_rate).value_or(0.0));
  if (!duration_ms.empty()) {
    out.Set("durationMs", Durations(duration_ms));
  }
  if (!event_time.empty()) {
    out.Set("eventTime", StringMap(event_time));
  }
  out.Set("stateOperators", state_operators);
  Json::Array source_list;
  for (const auto& source : sources) {
    Json item;
    item.Set("description", source.description);
    item.Set("startOffset", OffsetAsJson(source.start_offset));
    item.Set("endOffset", OffsetAsJson(source.end_offset));
    item.Set("latestOffset", OffsetAsJson(source.latest_offset));
    item.Set("numInputRows", source.rows);
    item.Set("inputRowsPerSecond", Rounded(InputRate(*this, source.rows)).value_or(0.0));
    item.Set("processedRowsPerSecond", Rounded(ProcessedRate(*this, source.rows)).value_or(0.0));
    if (!source.metrics.empty()) {
      item.Set("metrics", StringMap(source.metrics));
    }
    source_list.push_back(std::move(item));
  }
  out.Set("sources", std::move(source_list));
  Json sink;
  sink.Set("description", sink_description).Set("numOutputRows", sink_rows);
  out.Set("sink", std::move(sink));
  if (!observed.empty()) {
    Json metrics;
    for (const auto& one : observed) {
      metrics.Set(one.name, ValueToJson(types::Value(one.row), one.schema));
    }
    out.Set("observedMetrics", std::move(metrics));
  }
  return out.Dump();
}

std::string Progress::WireJson() const {
  Json out;
  out.Set("id", id).Set("runId", run_id).Set("name", name ? Json(*name) : Json(nullptr));
  out.Set("timestamp", IsoMillis(trigger_start_ms)).Set("batchId", batch_id).Set("batchDuration", batch_duration_ms);
  out.Set("durationMs", Durations(duration_ms));
  // In the order of Spark's hash map.
  Json::Object times;
  for (const char* key : {"min", "avg", "watermark", "max"}) {
    if (const auto at = event_time.find(key); at != event_time.end()) {
      times.emplace_back(key, at->second);
    }
  }
  out.Set("eventTime", std::move(times));
  out.Set("stateOperators", state_operators);
  Json::Array source_list;
  for (const auto& source : sources) {
    Json item;
    item.Set("description", source.description);
    item.Set("startOffset", OffsetAsText(source.start_offset));
    item.Set("endOffset", OffsetAsText(source.end_offset));
    item.Set("latestOffset", OffsetAsText(source.latest_offset));
    item.Set("numInputRows", source.rows);
    item.Set("inputRowsPerSecond", InputRate(*this, source.rows));
    item.Set("processedRowsPerSecond", ProcessedRate(*this, source.rows));
    item.Set("metrics", StringMap(source.metrics));
    source_list.push_back(std::move(item));
  }
  out.Set("sources", std::move(source_list));
  Json sink;
  sink.Set("description", sink_description).Set("numOutputRows", sink_rows).Set("metrics", Json::Object{});
  out.Set("sink", std::move(sink));
  Json metrics{Json::Object{}};
  for (const auto& one : observed) {
    Json::Array values;
    for (std::size_t i = 0; i < one.row.size() && i < one.schema.fields().size(); ++i) {
      values.push_back(ValueToJson(one.row[i], one.schema.fields()[i].type));
    }
    Json row;
    row.Set("values", std::move(values)).Set("schema", one.schema.ToJson());
    metrics.Set(one.name, std::move(row));
  }
  out.Set("observedMetrics", std::move(metrics));
  return out.Dump();
}

}  // namespace fleuve::stream
