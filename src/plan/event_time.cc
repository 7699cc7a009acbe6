#include "plan/event_time.h"

namespace fleuve::plan {

namespace {

Json Without(const Json& metadata, const char* key) {
  Json::Object kept;
  for (const auto& [name, value] : metadata.fields()) {
    if (name != key) {
      kept.emplace_back(name, value);
    }
  }
  return kept.empty() ? Json() : Json(std::move(kept));
}

Json WithMark(Json metadata, const char* mark) {
  metadata.Set(mark, true);
  return metadata;
}

}  // namespace

std::optional<std::int64_t> WatermarkDelayMs(const Attribute& attribute) {
  const Json* delay = attribute.metadata.Find(kWatermarkDelayKey);
  return delay == nullptr ? std::nullopt : std::optional<std::int64_t>(delay->AsInt());
}

const Attribute* EventTimeColumn(const std::vector<Attribute>& columns) {
  for (const Attribute& column : columns) {
    if (column.metadata.Find(kWatermarkDelayKey) != nullptr) {
      return &column;
    }
  }
  return nullptr;
}

bool IsSessionWindow(const ExprPtr& expr) {
  return (expr->kind == ExprKind::kCall && expr->function == "spark_session_window") ||
         (expr->kind == ExprKind::kAttribute && expr->attribute.metadata.Find(kSessionWindowKey) != nullptr);
}

Json EventTimeMetadata(const Expr& expr) {
  if (expr.kind == ExprKind::kAttribute) {
    return expr.attribute.metadata;
  }
  if (expr.kind != ExprKind::kCall || expr.children.empty()) {
    return {};
  }
  if (expr.function == "spark_window") {
    return WithMark(EventTimeMetadata(*expr.children[0]), kTimeWindowKey);
  }
  if (expr.function == "spark_session_window") {
    return WithMark(EventTimeMetadata(*expr.children[0]), kSessionWindowKey);
  }
  if (expr.function == "spark_window_time" && expr.children[0]->kind == ExprKind::kGetField) {
    const Json of_window = EventTimeMetadata(*expr.children[0]->children[0]);
    return Without(Without(of_window, kTimeWindowKey), kSessionWindowKey);
  }
  return {};
}

bool CarriesWatermark(const ExprPtr& expr) { return EventTimeMetadata(*expr).Find(kWatermarkDelayKey) != nullptr; }

std::vector<Attribute> WithWatermark(std::vector<Attribute> columns, AttributeId event_time,
                                     std::int64_t delay_micros) {
  for (Attribute& column : columns) {
    if (column.id == event_time) {
      Json metadata = Without(column.metadata, kWatermarkDelayKey);
      metadata.Set(kWatermarkDelayKey, delay_micros / 1000);
      column.metadata = std::move(metadata);
    } else if (column.metadata.Find(kWatermarkDelayKey) != nullptr) {
      column.metadata = Without(column.metadata, kWatermarkDelayKey);
    }
  }
  return columns;
}

std::vector<Attribute> WithoutEventTime(std::vector<Attribute> columns) {
  for (Attribute& column : columns) {
    for (const char* key : {kWatermarkDelayKey, kTimeWindowKey, kSessionWindowKey}) {
      if (column.metadata.Find(key) != nullptr) {
        column.metadata = Without(column.metadata, key);
      }
    }
  }
  return columns;
}

std::vector<const LogicalPlan*> WatermarkNodes(const PlanPtr& plan) {
  std::vector<const LogicalPlan*> found;
  VisitPlan(plan, [&found](const LogicalPlan& node) {
    if (node.kind == PlanKind::kWatermark && node.is_streaming) {
      found.push_back(&node);
    }
  });
  return found;
}

}  // namespace fleuve::plan
