// How many tasks a plan's rows are written by.
#include "plan/write_tasks.h"

#include <gtest/gtest.h>

namespace fleuve::plan {
namespace {

using types::DataType;

PlanPtr Range(std::int64_t rows, std::int64_t parts) {
  auto node = std::make_shared<LogicalPlan>();
  node->kind = PlanKind::kRange;
  node->range = {0, rows, 1};
  node->count = parts;
  Attribute id;
  id.id = NewAttributeId();
  id.name = "id";
  id.type = DataType::Long();
  node->output = {id};
  return node;
}

PlanPtr Over(PlanKind kind, std::vector<PlanPtr> children, std::int64_t count = 0) {
  auto node = std::make_shared<LogicalPlan>();
  node->kind = kind;
  node->output = children[0]->output;
  node->children = std::move(children);
  node->count = count;
  return node;
}

PlanPtr Shuffled(PlanPtr child, std::int64_t count) {
  auto node = std::make_shared<LogicalPlan>(*Over(PlanKind::kRepartition, {std::move(child)}, count));
  node->shuffle = true;
  return node;
}

std::int64_t Tasks(const PlanPtr& plan) {
  const auto tasked = SpreadOverTasks(plan, AnalysisConfig());
  EXPECT_TRUE(tasked.ok()) << tasked.error().ToString();
  const std::size_t columns = plan->output.size() + (tasked->tasks > 1 ? 1 : 0);
  EXPECT_EQ(tasked->plan->output.size(), columns);
  return tasked->tasks;
}

TEST(WriteTasks, OnlyWhatSaysANumberHasMoreThanOne) {
  EXPECT_EQ(Tasks(Range(10, 0)), 1);
  EXPECT_EQ(Tasks(Range(10, 4)), 4);
  EXPECT_EQ(Tasks(Range(0, 4)), 1);
  const PlanPtr range = Range(10, 4);
  EXPECT_EQ(Tasks(MakeProject(range, {MakeAttribute(range->output[0])}, range->output)), 4);
  EXPECT_EQ(Tasks(Over(PlanKind::kRepartition, {range}, 3)), 3);
  EXPECT_EQ(Tasks(Over(PlanKind::kRepartition, {range}, 8)), 4);
  EXPECT_EQ(Tasks(Over(PlanKind::kRepartition, {range}, 1)), 1);
  EXPECT_EQ(Tasks(Shuffled(Range(10, 1), 7)), 7);
  EXPECT_EQ(Tasks(Over(PlanKind::kLimit, {range}, 5)), 1);
}

TEST(WriteTasks, AUnionHasThoseOfItsChildrenUnlessEachHasOne) {
  EXPECT_EQ(Tasks(Over(PlanKind::kUnion, {Range(3, 1), Range(3, 1)})), 1);
  EXPECT_EQ(Tasks(Over(PlanKind::kUnion, {Range(3, 2), Range(3, 1), Range(4, 3)})), 6);
  const auto one = std::make_shared<LogicalPlan>();
  const PlanPtr a = MakeProject(one, {MakeLiteral(types::Value(1), DataType::Long())}, Range(1, 0)->output);
  EXPECT_EQ(Tasks(Over(PlanKind::kUnion, {a, a, a})), 3);
}

TEST(WriteTasks, ASortKeepsThoseOfARangeInItsOrder) {
  const PlanPtr range = Range(10, 4);
  auto sorted = std::make_shared<LogicalPlan>(*Over(PlanKind::kSort, {range}));
  SortKey key;
  key.expr = MakeAttribute(range->output[0]);
  sorted->order_by = {key};
  EXPECT_EQ(Tasks(sorted), 4);
  sorted->order_by[0].ascending = false;
  EXPECT_EQ(Tasks(sorted), 1);
  sorted->all = true;
  EXPECT_EQ(Tasks(sorted), 4);
}

}  // namespace
}  // namespace fleuve::plan
