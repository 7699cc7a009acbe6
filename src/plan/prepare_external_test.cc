// Where a plan is cut for functions of the user.
#include <gtest/gtest.h>

#include "plan/analyzer.h"
#include "plan/external.h"
#include "plan/prepare_internal.h"

namespace fleuve::plan {
namespace {

using types::DataType;

Attribute Attr(const std::string& name) {
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.name = name;
  attribute.type = DataType::Long();
  return attribute;
}

PlanPtr Range() {
  auto node = std::make_shared<LogicalPlan>();
  node->kind = PlanKind::kRange;
  node->range = {0, 10, 1};
  node->output = {Attr("id")};
  return node;
}

ExprPtr Ref(const PlanPtr& plan) { return MakeAttribute(plan->output[0]); }

ExprPtr Call(const std::string& name, std::vector<ExprPtr> children, int eval_type = 100,
             DataType type = DataType::Long()) {
  auto function = std::make_shared<ExternalFunction>();
  function->name = name;
  function->eval_type = eval_type;
  function->type = type;
  auto expr = std::make_shared<Expr>(*MakeCall("external", std::move(children), type, true, true));
  expr->external = std::move(function);
  return expr;
}

PlanPtr Cut(const PlanPtr& plan) {
  auto made = CutExternal(plan, AnalysisConfig());
  EXPECT_TRUE(made.ok()) << made.error().ToString();
  return made.ok() ? *made : plan;
}

std::vector<const LogicalPlan*> Operators(const PlanPtr& plan) {
  std::vector<const LogicalPlan*> found;
  VisitPlan(plan, [&found](const LogicalPlan& node) {
    if (node.kind == PlanKind::kExternal) {
      found.push_back(&node);
    }
  });
  return found;
}

TEST(CutExternal, OnePassForAllCallsAndEachOnce) {
  const PlanPtr range = Range();
  const auto project = MakeProject(range, {Call("f", {Ref(range)}), Call("f", {Ref(range)}), Call("g", {Ref(range)})},
                                   {Attr("a"), Attr("b"), Attr("c")});
  const PlanPtr made = Cut(project);
  const auto found = Operators(made);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->external->calls.size(), 2U);
  EXPECT_EQ(found[0]->exprs.size(), 1U);
}

TEST(CutExternal, CallsOfCallsAreChainedWhereTheyTakeNothingElse) {
  const PlanPtr range = Range();
  const ExprPtr chained = Call("f", {Call("g", {Ref(range)})});
  const PlanPtr once = Cut(MakeProject(range, {chained}, {Attr("a")}));
  auto found = Operators(once);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0]->external->calls[0].chain.size(), 2U);
  EXPECT_EQ(found[0]->external->calls[0].chain[0]->name, "g");
  // Another argument, or another kind of function: one pass after the other.
  const ExprPtr with_argument = Call("f", {Call("g", {Ref(range)}), Ref(range)});
  EXPECT_EQ(Operators(Cut(MakeProject(range, {with_argument}, {Attr("a")}))).size(), 2U);
  const ExprPtr other_kind = Call("f", {Call("g", {Ref(range)}, 200)});
  EXPECT_EQ(Operators(Cut(MakeProject(range, {other_kind}, {Attr("a")}))).size(), 2U);
}

TEST(CutExternal, ConditionsWithoutCallsAreTestedFirst) {
  const PlanPtr range = Range();
  const ExprPtr call = Call("f", {Ref(range)}, 100, DataType::Boolean());
  const ExprPtr plain = MakeCall("isnotnull", {Ref(range)}, DataType::Boolean(), false);
  const PlanPtr made = Cut(MakeFilter(range, MakeAnd(call, plain)));
  const auto found = Operators(made);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->children[0]->kind, PlanKind::kFilter);
  // The column of the call ends above the filter.
  ASSERT_EQ(made->output.size(), 1U);
  EXPECT_EQ(made->output[0].id, range->output[0].id);
}

TEST(CutExternal, CallsOverBothSidesOfAJoinStandAboveIt) {
  const PlanPtr left = Range();
  const PlanPtr right = Range();
  auto join = std::make_shared<LogicalPlan>();
  join->kind = PlanKind::kJoin;
  join->join_type = JoinType::kInner;
  join->children = {left, right};
  join->output = {left->output[0], right->output[0]};
  join->condition = Call("f", {Ref(left), Ref(right)}, 100, DataType::Boolean());
  const PlanPtr made = Cut(join);
  const auto found = Operators(made);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]->children[0]->kind, PlanKind::kJoin);
  EXPECT_EQ(found[0]->children[0]->join_type, JoinType::kCross);
  auto outer = std::make_shared<LogicalPlan>(*join);
  outer->join_type = JoinType::kLeft;
  const auto refused = CutExternal(outer, AnalysisConfig());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().condition(), "UNSUPPORTED_FEATURE.PYTHON_UDF_IN_ON_CLAUSE");
  // Over one side: below it.
  auto one_side = std::make_shared<LogicalPlan>(*outer);
  one_side->condition = MakeCall("eq", {Call("f", {Ref(left)}), Ref(right)}, DataType::Boolean(), true);
  const PlanPtr below = Cut(one_side);
  const auto under = Operators(below);
  ASSERT_EQ(under.size(), 1U);
  EXPECT_EQ(under[0]->children[0]->kind, PlanKind::kRange);
}

}  // namespace
}  // namespace fleuve::plan
