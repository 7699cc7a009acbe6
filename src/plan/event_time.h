#pragma once

/// \file
/// Event time in plans: the metadata by which a column tells that it carries a watermark or is a window.

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/logical_plan.h"

namespace fleuve::plan {

/// Key of an attribute's metadata: the delay of its watermark in milliseconds.
inline constexpr const char* kWatermarkDelayKey = "spark.watermarkDelayMs";
inline constexpr const char* kTimeWindowKey = "spark.timeWindow";
inline constexpr const char* kSessionWindowKey = "spark.sessionWindow";

/// The delay of the column's watermark in milliseconds; nullopt: it has none.
std::optional<std::int64_t> WatermarkDelayMs(const Attribute& attribute);
/// The first column that carries a watermark; null: none does.
const Attribute* EventTimeColumn(const std::vector<Attribute>& columns);
/// True for a column, or an expression over one, that session_window() made.
bool IsSessionWindow(const ExprPtr& expr);
/// What a column that holds `expr` has of `expr`'s columns: their metadata where it is a bare column, the watermark of
/// the time where it is a window or a window_time() over one. Null: nothing.
Json EventTimeMetadata(const Expr& expr);
/// True where `expr` is a column (or a window over one) with a watermark.
bool CarriesWatermark(const ExprPtr& expr);
/// The columns of a kWatermark node: `event_time` has the delay, and no other column has one.
std::vector<Attribute> WithWatermark(std::vector<Attribute> columns, AttributeId event_time, std::int64_t delay_micros);
/// The columns as a source gives them: what a query that wrote the table knew of its watermark says nothing here.
std::vector<Attribute> WithoutEventTime(std::vector<Attribute> columns);
/// The kWatermark nodes of a streaming plan, parents first, left to right: the order in which they are numbered.
std::vector<const LogicalPlan*> WatermarkNodes(const PlanPtr& plan);

}  // namespace fleuve::plan
