#include "stream/watermark.h"

#include <gtest/gtest.h>

#include "plan/event_time.h"

namespace fleuve::stream {
namespace {

using types::DataType;
using types::Value;

/// A watermark over a leaf with one timestamp column.
plan::PlanPtr Marked(std::int64_t delay_ms) {
  plan::Attribute time;
  time.id = plan::NewAttributeId();
  time.name = "t";
  time.type = DataType::Timestamp();
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kStream;
  leaf->is_streaming = true;
  leaf->output = {time};
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kWatermark;
  node->is_streaming = true;
  node->children = {leaf};
  node->event_time = time.id;
  node->delay_micros = delay_ms * 1000;
  node->output = plan::WithWatermark(leaf->output, time.id, node->delay_micros);
  return node;
}

plan::PlanPtr Union(const plan::PlanPtr& a, const plan::PlanPtr& b) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kUnion;
  node->is_streaming = true;
  node->children = {a, b};
  node->output = a->output;
  return node;
}

engine::ObservedMetrics Saw(const plan::PlanPtr& watermark, std::int64_t count, std::int64_t max, std::int64_t min,
                            double avg) {
  auto node = ObserveEventTime(*watermark, watermark->children[0], plan::AnalysisConfig());
  EXPECT_TRUE(node.ok()) << node.error().message();
  engine::ObservedMetrics metrics;
  metrics.name = (*node)->name;
  metrics.row = {Value(count), Value(max), Value(min), Value(avg)};
  return metrics;
}

TEST(WatermarkTest, TheSlowestColumnLeadsAndNothingGoesBack) {
  const plan::PlanPtr a = Marked(10);
  const plan::PlanPtr b = Marked(20);
  auto made = WatermarkTracker::Make(Union(a, b), "min");
  ASSERT_TRUE(made.ok());
  WatermarkTracker tracker = *std::move(made);
  tracker.Advance({Saw(a, 1, 1000, 1000, 1000)});
  EXPECT_EQ(tracker.current_ms(), 0);  // the other one has seen nothing
  tracker.Advance({Saw(b, 2, 500, 300, 400)});
  EXPECT_EQ(tracker.current_ms(), 480);
  EXPECT_EQ(tracker.EventTime(7, true), (std::map<std::string, std::string>{{"watermark", "1970-01-01T00:00:00.007Z"},
                                                                            {"max", "1970-01-01T00:00:00.500Z"},
                                                                            {"min", "1970-01-01T00:00:00.300Z"},
                                                                            {"avg", "1970-01-01T00:00:00.400Z"}}));
  tracker.Advance({Saw(b, 1, 100, 100, 100)});
  EXPECT_EQ(tracker.current_ms(), 480);
  tracker.Advance({Saw(b, 1, 5000, 5000, 5000)});
  EXPECT_EQ(tracker.current_ms(), 990);
  tracker.Advance({});
  EXPECT_EQ(tracker.current_ms(), 990);
  EXPECT_EQ(tracker.EventTime(990, true).size(), 1U);
}

TEST(WatermarkTest, TheFastestColumnLeadsWherePolicySaysSo) {
  const plan::PlanPtr a = Marked(10);
  const plan::PlanPtr b = Marked(20);
  auto made = WatermarkTracker::Make(Union(a, b), "MAX");
  ASSERT_TRUE(made.ok());
  WatermarkTracker tracker = *std::move(made);
  tracker.Advance({Saw(a, 1, 1000, 1000, 1000)});
  EXPECT_EQ(tracker.current_ms(), 990);
  EXPECT_FALSE(WatermarkTracker::Make(a, "average").ok());
}

TEST(WatermarkTest, ARestartKnowsTheValueAlone) {
  const plan::PlanPtr a = Marked(10);
  WatermarkTracker tracker = *WatermarkTracker::Make(a, "min");
  tracker.Restore(700);
  tracker.Advance({});
  EXPECT_EQ(tracker.current_ms(), 700);
  // Of several looks at one batch the fullest tells, and every look may move the watermark.
  tracker.Advance({Saw(a, 5, 900, 1, 300), Saw(a, 2, 400, 1, 200)});
  EXPECT_EQ(tracker.current_ms(), 890);
  EXPECT_EQ(tracker.EventTime(0, true).at("avg"), "1970-01-01T00:00:00.300Z");
}

}  // namespace
}  // namespace fleuve::stream
