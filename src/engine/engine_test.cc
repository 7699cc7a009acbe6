#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/ids.h"
#include "columnar/ipc.h"
#include "engine/parquet_files.h"
#include "plan/expr.h"
#include "plan/logical_plan.h"

namespace fleuve::engine {
namespace {

using plan::Attribute;
using plan::ExprPtr;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;
using types::DataType;
using types::Value;
using Rows = std::vector<Value::List>;

Attribute Attr(const std::string& name, DataType type) {
  Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = name;
  attribute.type = std::move(type);
  return attribute;
}

ExprPtr Ref(const Attribute& attribute) { return plan::MakeAttribute(attribute); }
ExprPtr Lit(std::int64_t value) { return plan::MakeLiteral(Value(value), DataType::Long()); }
ExprPtr Text(const char* value) { return plan::MakeLiteral(Value(value), DataType::String()); }
ExprPtr Call(const std::string& name, std::vector<ExprPtr> children, DataType type) {
  return plan::MakeCall(name, std::move(children), std::move(type), true);
}
ExprPtr Plus(ExprPtr a, ExprPtr b) { return Call("duck_add", {std::move(a), std::move(b)}, DataType::Long()); }
ExprPtr Mod(ExprPtr a, std::int64_t b) { return Call("duck_mod", {std::move(a), Lit(b)}, DataType::Long()); }

std::shared_ptr<LogicalPlan> Node(PlanKind kind, std::vector<PlanPtr> children) {
  auto node = std::make_shared<LogicalPlan>();
  node->kind = kind;
  node->children = std::move(children);
  if (!node->children.empty()) {
    node->output = node->children[0]->output;
  }
  return node;
}

PlanPtr Range(std::int64_t start, std::int64_t end, std::int64_t step = 1) {
  auto node = Node(PlanKind::kRange, {});
  node->range = {start, end, step};
  node->output = {Attr("id", DataType::Long())};
  return node;
}

PlanPtr RowsPlan(const types::Schema& schema, const Rows& rows) {
  auto node = Node(PlanKind::kRows, {});
  auto scan = std::make_shared<plan::RowScan>();
  auto batch = columnar::BatchFromRows(schema, rows);
  EXPECT_TRUE(batch.ok());
  scan->batches.push_back(*batch);
  node->rows = scan;
  for (const auto& field : schema.fields()) {
    node->output.push_back(Attr(field.name, field.type));
  }
  return node;
}

PlanPtr Project(PlanPtr child, std::vector<ExprPtr> exprs) {
  std::vector<Attribute> output;
  for (const auto& expr : exprs) {
    output.push_back(expr->kind == plan::ExprKind::kAttribute ? expr->attribute : Attr("x", expr->type));
  }
  return plan::MakeProject(std::move(child), std::move(exprs), std::move(output));
}

ExprPtr Agg(const std::string& function, std::vector<ExprPtr> children, DataType type) {
  auto expr = std::make_shared<plan::Expr>();
  expr->kind = plan::ExprKind::kAggregate;
  expr->function = function;
  expr->children = std::move(children);
  expr->type = std::move(type);
  expr->display = function;
  return expr;
}

PlanPtr Aggregate(PlanPtr child, std::vector<ExprPtr> grouping, std::vector<ExprPtr> aggregates) {
  auto node = Node(PlanKind::kAggregate, {std::move(child)});
  node->output.clear();
  for (const auto& list : {grouping, aggregates}) {
    for (const auto& expr : list) {
      node->output.push_back(expr->kind == plan::ExprKind::kAttribute ? expr->attribute : Attr("a", expr->type));
    }
  }
  node->grouping = std::move(grouping);
  node->aggregates = std::move(aggregates);
  return node;
}

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.threads = 2;
    options.memory_bytes = 512 << 20;
    auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().ToString();
    engine_ = *std::move(engine);
    folder_ = std::filesystem::temp_directory_path() / ("engine-test-" + NewUuid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<Rows> TryRun(const PlanPtr& plan, const ExecuteOptions& options = {}) {
    FLEUVE_ASSIGN(auto reader, engine_->Execute(plan, options));
    FLEUVE_ASSIGN(auto batches, ReadAll(*reader));
    Rows all;
    for (const auto& batch : batches) {
      FLEUVE_ASSIGN(auto rows, columnar::RowsFromBatch(batch));
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }
  Rows Run(const PlanPtr& plan, const ExecuteOptions& options = {}) {
    auto rows = TryRun(plan, options);
    EXPECT_TRUE(rows.ok()) << rows.error().ToString();
    return rows.ok() ? *rows : Rows();
  }

  std::unique_ptr<Engine> engine_;
  std::filesystem::path folder_;
};

Rows Longs(std::vector<std::vector<std::int64_t>> rows) {
  Rows all;
  for (const auto& row : rows) {
    Value::List values;
    for (const auto value : row) {
      values.emplace_back(value);
    }
    all.push_back(std::move(values));
  }
  return all;
}

TEST_F(EngineTest, RangeProjectFilter) {
  const auto range = Range(0, 10);
  const auto filter = plan::MakeFilter(range, Call("gt", {Ref(range->output[0]), Lit(6)}, DataType::Boolean()));
  EXPECT_EQ(Run(Project(filter, {Plus(Ref(range->output[0]), Lit(100))})), Longs({{107}, {108}, {109}}));
  EXPECT_EQ(Run(Range(5, 0, -2)), Longs({{5}, {3}, {1}}));
  EXPECT_TRUE(Run(Range(5, 5)).empty());
}

TEST_F(EngineTest, LongResultsComeInOrderAndInBatches) {
  ExecuteOptions options;
  options.batch_rows = 1000;
  auto reader = engine_->Execute(Range(0, 2000000), options);
  ASSERT_TRUE(reader.ok());
  std::int64_t next = 0;
  while (true) {
    auto batch = (*reader)->Next();
    ASSERT_TRUE(batch.ok());
    if (!batch->has_value()) {
      break;
    }
    const auto& array = *(*batch)->array->get();
    ASSERT_LE(array.length, 1000);
    const auto* values = static_cast<const std::int64_t*>(array.children[0]->buffers[1]);
    for (std::int64_t i = 0; i < array.length; i++) {
      ASSERT_EQ(values[i], next++);
    }
  }
  EXPECT_EQ(next, 2000000);
}

TEST_F(EngineTest, RowsOfEveryTypePassUnchanged) {
  auto schema = DataType::FromDdl(
      "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h decimal(5,2), i decimal(38,10), "
      "j string, k binary, l date, m timestamp, n timestamp_ntz, o interval day to second, p interval year to month, "
      "q array<struct<x: int, y: string>>, r map<string, array<int>>, s struct<x: struct<Y: bigint>, y: string>");
  ASSERT_TRUE(schema.ok()) << schema.error().ToString();
  const Value::List row = {Value(true),
                           Value(-1),
                           Value(300),
                           Value(-70000),
                           Value(std::int64_t{1} << 40),
                           Value(1.5),
                           Value(-0.25),
                           Value(types::Int128{12345}),
                           Value(types::Int128{-1} * 1000000007),
                           Value("text longer than twelve bytes"),
                           Value(std::string("\xff\x00z", 3)),
                           Value(19000),
                           Value(std::int64_t{1700000000000001}),
                           Value(std::int64_t{-5}),
                           Value(std::int64_t{86400000000}),
                           Value(14),
                           Value(Value::List{Value(Value::List{Value(1), Value("one")}), Value()}),
                           Value(Value::List{Value(Value::List{Value("k"), Value(Value::List{Value(1), Value()})})}),
                           Value(Value::List{Value(Value::List{Value(7)}), Value()})};
  Rows rows = {row, Value::List(row.size()), row};
  EXPECT_EQ(Run(RowsPlan(*schema, rows)), rows);
}

TEST_F(EngineTest, IntervalsBeyondArrowsNanosecondsAreRefused) {
  const auto one = [&](std::int64_t micros) {
    const Value value(types::CalendarInterval{1, -2, micros});
    return TryRun(Project(Range(0, 1), {plan::MakeLiteral(value, DataType::Of(types::TypeKind::kCalendarInterval))}));
  };
  const std::int64_t most = INT64_MAX / 1000;
  const auto rows = one(most);
  ASSERT_TRUE(rows.ok()) << rows.error().ToString();
  EXPECT_EQ(*rows, (Rows{{Value(types::CalendarInterval{1, -2, most})}}));
  const auto refused = one(most + 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(), "long overflow");
}

TEST_F(EngineTest, VoidAndEmptyStructColumns) {
  const auto schema = DataType::Struct({{"a", DataType::Void(), true, Json()},
                                        {"b", DataType::Struct({}), true, Json()},
                                        {"c", DataType::Long(), true, Json()}});
  const Rows rows = {{Value(), Value(Value::List{}), Value(1)}, {Value(), Value(), Value(2)}};
  EXPECT_EQ(Run(RowsPlan(schema, rows)), rows);
}

TEST_F(EngineTest, AggregateGroupsAndFirstInOrder) {
  const auto range = Range(0, 100000);
  const auto id = Ref(range->output[0]);
  const auto plan = Aggregate(range, {Mod(id, 3)},
                              {Agg("duck_count_star", {}, DataType::Long()), Agg("duck_max", {id}, DataType::Long()),
                               Agg("duck_first", {id}, DataType::Long())});
  auto rows = Run(plan);
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a[0].integer() < b[0].integer(); });
  EXPECT_EQ(rows, Longs({{0, 33334, 99999, 0}, {1, 33333, 99997, 1}, {2, 33333, 99998, 2}}));
}

TEST_F(EngineTest, ExpressionsOverAggregates) {
  const auto range = Range(0, 10);
  const auto id = Ref(range->output[0]);
  const auto key = Mod(id, 2);
  const auto plan =
      Aggregate(range, {key},
                {Plus(Agg("duck_max", {id}, DataType::Long()), Plus(Agg("duck_min", {id}, DataType::Long()), key))});
  auto rows = Run(plan);
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a[0].integer() < b[0].integer(); });
  EXPECT_EQ(rows, Longs({{0, 8}, {1, 11}}));
}

TEST_F(EngineTest, JoinsOfEveryType) {
  const auto left = Range(0, 4);
  const auto right = Range(2, 6);
  const auto join = [&](plan::JoinType type, bool equal) {
    auto node = Node(PlanKind::kJoin, {left, right});
    node->join_type = type;
    node->condition = Call(equal ? "eq" : "lt", {Ref(left->output[0]), Ref(right->output[0])}, DataType::Boolean());
    if (type != plan::JoinType::kLeftSemi && type != plan::JoinType::kLeftAnti) {
      node->output.push_back(right->output[0]);
    }
    return Run(node);
  };
  EXPECT_EQ(join(plan::JoinType::kInner, true), Longs({{2, 2}, {3, 3}}));
  EXPECT_EQ(join(plan::JoinType::kLeft, true).size(), 4U);
  EXPECT_EQ(join(plan::JoinType::kRight, true).size(), 4U);
  EXPECT_EQ(join(plan::JoinType::kFull, true).size(), 6U);
  EXPECT_EQ(join(plan::JoinType::kLeftSemi, true), Longs({{2}, {3}}));
  EXPECT_EQ(join(plan::JoinType::kLeftAnti, true), Longs({{0}, {1}}));
  EXPECT_EQ(join(plan::JoinType::kLeftSemi, false).size(), 4U);
  EXPECT_EQ(join(plan::JoinType::kLeftAnti, false).size(), 0U);
  EXPECT_EQ(join(plan::JoinType::kFull, false).size(), 4U * 4U - 3U);
}

TEST_F(EngineTest, SortIsStableWithNullsWhereAsked) {
  const auto schema = *DataType::FromDdl("k bigint, v bigint");
  const auto rows =
      RowsPlan(schema, {{Value(1), Value(1)}, {Value(), Value(2)}, {Value(0), Value(3)}, {Value(1), Value(4)}});
  auto sort = Node(PlanKind::kSort, {rows});
  sort->order_by = {{Ref(rows->output[0]), false, false}};
  EXPECT_EQ(Run(sort), (Rows{{Value(1), Value(1)}, {Value(1), Value(4)}, {Value(0), Value(3)}, {Value(), Value(2)}}));
  sort->order_by = {{Mod(Ref(rows->output[0]), 2), true, true}};
  auto limit = Node(PlanKind::kLimit, {sort});
  limit->count = 2;
  EXPECT_EQ(Run(limit), (Rows{{Value(), Value(2)}, {Value(0), Value(3)}}));
}

TEST_F(EngineTest, LimitOffsetTailUnion) {
  const auto range = Range(0, 100000);
  auto limit = Node(PlanKind::kLimit, {range});
  limit->count = 2;
  auto tail = Node(PlanKind::kTail, {range});
  tail->count = 2;
  auto offset = Node(PlanKind::kOffset, {range});
  offset->count = 99999;
  auto both = Node(PlanKind::kUnion, {limit, tail, offset});
  both->output = {Attr("u", DataType::Long())};
  EXPECT_EQ(Run(both), Longs({{0}, {1}, {99998}, {99999}, {99999}}));
}

TEST_F(EngineTest, DistinctByKeyKeepsTheFirstRow) {
  const auto range = Range(0, 10000);
  const auto project = Project(range, {Mod(Ref(range->output[0]), 3), Ref(range->output[0])});
  auto distinct = Node(PlanKind::kDistinct, {project});
  distinct->keys = {project->output[0].id};
  EXPECT_EQ(Run(distinct), Longs({{0, 0}, {1, 1}, {2, 2}}));
}

TEST_F(EngineTest, SetOperations) {
  auto except = Node(PlanKind::kExcept, {Range(0, 5), Range(1, 4)});
  except->output = {Attr("x", DataType::Long())};
  EXPECT_THAT(Run(except), testing::UnorderedElementsAreArray(Longs({{0}, {4}})));
  auto intersect = Node(PlanKind::kIntersect, {Range(0, 5), Range(3, 9)});
  intersect->output = {Attr("x", DataType::Long())};
  EXPECT_THAT(Run(intersect), testing::UnorderedElementsAreArray(Longs({{3}, {4}})));
}

TEST_F(EngineTest, WindowFunctions) {
  const auto range = Range(0, 6);
  const auto id = Ref(range->output[0]);
  const auto over = [&](ExprPtr call, bool running) {
    auto expr = std::make_shared<plan::Expr>();
    expr->kind = plan::ExprKind::kWindow;
    expr->type = call->type;
    expr->children = {std::move(call)};
    expr->window.partition_by = {Mod(id, 2)};
    expr->window.order_by = {{id, true, true}};
    if (running) {
      expr->window.frame.unit = plan::WindowFrame::Unit::kRows;
      expr->window.frame.lower = {plan::WindowFrame::BoundKind::kOffset, plan::MakeLiteral(Value(-1), DataType::Int())};
    }
    return ExprPtr(expr);
  };
  auto window = Node(PlanKind::kWindow, {range});
  window->exprs = {over(Call("row_number", {}, DataType::Int()), false),
                   over(Agg("duck_min", {id}, DataType::Long()), true)};
  window->output.push_back(Attr("n", DataType::Int()));
  window->output.push_back(Attr("m", DataType::Long()));
  auto sort = Node(PlanKind::kSort, {window});
  sort->order_by = {{id, true, true}};
  EXPECT_EQ(Run(sort), Longs({{0, 1, 0}, {1, 1, 1}, {2, 2, 0}, {3, 2, 1}, {4, 3, 2}, {5, 3, 3}}));
}

TEST_F(EngineTest, ExplodeAndExpand) {
  const auto schema = *DataType::FromDdl("a array<bigint>, m map<string, bigint>");
  const auto rows = RowsPlan(
      schema, {{Value(Value::List{Value(1), Value(2)}), Value(Value::List{Value(Value::List{Value("k"), Value(5)})})},
               {Value(Value::List{}), Value()}});
  const auto generate = [&](const std::string& function, std::size_t column, bool outer,
                            std::vector<Attribute> columns) {
    auto node = Node(PlanKind::kGenerate, {rows});
    node->generator.function = function;
    node->generator.arguments = {Ref(rows->output[column])};
    node->generator.outer = outer;
    node->output.insert(node->output.end(), columns.begin(), columns.end());
    std::vector<ExprPtr> refs;
    for (const auto& attribute : columns) {
      refs.push_back(Ref(attribute));
    }
    return Run(Project(node, refs));
  };
  EXPECT_EQ(generate("explode", 0, false, {Attr("col", DataType::Long())}), Longs({{1}, {2}}));
  EXPECT_EQ(generate("explode", 0, true, {Attr("col", DataType::Long())}), (Rows{{Value(1)}, {Value(2)}, {Value()}}));
  EXPECT_EQ(generate("posexplode", 0, false, {Attr("pos", DataType::Int()), Attr("col", DataType::Long())}),
            Longs({{0, 1}, {1, 2}}));
  EXPECT_EQ(generate("explode", 1, false, {Attr("key", DataType::String()), Attr("value", DataType::Long())}),
            (Rows{{Value("k"), Value(5)}}));

  const auto range = Range(0, 2);
  auto expand = Node(PlanKind::kExpand, {range});
  expand->projections = {{Ref(range->output[0]), Lit(0)}, {plan::MakeNull(DataType::Long()), Lit(1)}};
  expand->output = {Attr("id", DataType::Long()), Attr("g", DataType::Long())};
  EXPECT_EQ(Run(expand), (Rows{{Value(0), Value(0)}, {Value(), Value(1)}, {Value(1), Value(0)}, {Value(), Value(1)}}));
}

TEST_F(EngineTest, Subqueries) {
  const auto outer = Range(0, 4);
  const auto inner = Range(2, 4);
  const auto subquery = [&](plan::SubqueryKind kind, PlanPtr plan, std::vector<ExprPtr> children, DataType type) {
    auto expr = std::make_shared<plan::Expr>();
    expr->kind = plan::ExprKind::kSubquery;
    expr->subquery = std::move(plan);
    expr->subquery_kind = kind;
    expr->children = std::move(children);
    expr->type = std::move(type);
    return ExprPtr(expr);
  };
  const auto id = Ref(outer->output[0]);
  EXPECT_EQ(Run(plan::MakeFilter(outer, subquery(plan::SubqueryKind::kIn, inner, {id}, DataType::Boolean()))),
            Longs({{2}, {3}}));
  auto outer_id = std::make_shared<plan::Expr>(*id);
  outer_id->is_outer = true;
  const auto correlated =
      plan::MakeFilter(inner, Call("eq", {Ref(inner->output[0]), ExprPtr(outer_id)}, DataType::Boolean()));
  EXPECT_EQ(Run(plan::MakeFilter(outer, subquery(plan::SubqueryKind::kExists, correlated, {}, DataType::Boolean()))),
            Longs({{2}, {3}}));
  EXPECT_EQ(Run(Project(outer, {subquery(plan::SubqueryKind::kScalar, correlated, {}, DataType::Long())})),
            (Rows{{Value()}, {Value()}, {Value(2)}, {Value(3)}}));
  const auto error = TryRun(Project(outer, {subquery(plan::SubqueryKind::kScalar, inner, {}, DataType::Long())}));
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().condition(), "SCALAR_SUBQUERY_TOO_MANY_ROWS");
  const auto pairs = Project(inner, {Ref(inner->output[0]), Plus(Ref(inner->output[0]), Lit(1))});
  EXPECT_EQ(Run(plan::MakeFilter(
                outer, subquery(plan::SubqueryKind::kIn, pairs, {id, Plus(id, Lit(1))}, DataType::Boolean()))),
            Longs({{2}, {3}}));
}

TEST_F(EngineTest, LateralJoinsSeeTheLeftSide) {
  const auto left = Range(0, 3);
  auto outer = std::make_shared<plan::Expr>(*Ref(left->output[0]));
  outer->is_outer = true;
  const auto right = Range(0, 2);
  const auto lateral = plan::MakeFilter(Project(right, {Plus(Ref(right->output[0]), ExprPtr(outer))}),
                                        Call("gt", {ExprPtr(outer), Lit(0)}, DataType::Boolean()));
  auto join = Node(PlanKind::kJoin, {left, lateral});
  join->join_type = plan::JoinType::kLeft;
  join->lateral = true;
  join->output.push_back(lateral->output[0]);
  EXPECT_THAT(Run(join), testing::UnorderedElementsAreArray(Rows{{Value(0), Value()},
                                                                 {Value(1), Value(1)},
                                                                 {Value(1), Value(2)},
                                                                 {Value(2), Value(2)},
                                                                 {Value(2), Value(3)}}));
}

TEST_F(EngineTest, InAsAValueIsNeverNull) {
  const auto schema = *DataType::FromDdl("v bigint");
  const auto outer = RowsPlan(schema, {{Value(1)}, {Value(2)}, {Value()}});
  const auto inner = RowsPlan(schema, {{Value(1)}, {Value()}});
  auto in = std::make_shared<plan::Expr>();
  in->kind = plan::ExprKind::kSubquery;
  in->subquery = inner;
  in->subquery_kind = plan::SubqueryKind::kIn;
  in->children = {Ref(outer->output[0])};
  in->type = DataType::Boolean();
  const auto not_in = Call("not", {ExprPtr(in)}, DataType::Boolean());
  EXPECT_EQ(Run(Project(outer, {ExprPtr(in), not_in})),
            (Rows{{Value(true), Value(false)}, {Value(false), Value(false)}, {Value(false), Value(false)}}));
  EXPECT_TRUE(Run(plan::MakeFilter(outer, not_in)).empty());
}

TEST_F(EngineTest, RandomValuesFollowSparksGeneratorInRowOrder) {
  const auto range = Range(0, 100000);
  const auto rand = plan::MakeCall("spark_rand", {Lit(0)}, DataType::Double(), false, false, false);
  const auto rows = Run(Project(range, {Ref(range->output[0]), rand}));
  EXPECT_EQ(rows[0][1], Value(0.7604953758285915));  // SELECT rand(0)
  // sample() draws the same numbers.
  auto sample = Node(PlanKind::kSample, {range});
  sample->sample.lower = 0.2;
  sample->sample.upper = 0.5;
  Rows expected;
  for (const auto& row : rows) {
    if (row[1].real() >= 0.2 && row[1].real() < 0.5) {
      expected.push_back({row[0]});
    }
  }
  EXPECT_EQ(Run(sample), expected);
}

TEST_F(EngineTest, LambdasSeeColumnsAndVariablesAroundThem) {
  const auto schema = *DataType::FromDdl("a array<bigint>, n bigint");
  const auto rows = RowsPlan(schema, {{Value(Value::List{Value(1), Value(2)}), Value(10)}, {Value(), Value(20)}});
  const auto lambda = [](const Attribute& parameter, const ExprPtr& body) {
    auto expr = std::make_shared<plan::Expr>();
    expr->kind = plan::ExprKind::kLambda;
    expr->parameters = {parameter};
    expr->children = {body};
    expr->type = body->type;
    return ExprPtr(expr);
  };
  const auto variable = [](const Attribute& parameter) {
    auto expr = std::make_shared<plan::Expr>(*Ref(parameter));
    expr->kind = plan::ExprKind::kLambdaVariable;
    return ExprPtr(expr);
  };
  const auto x = Attr("x", DataType::Long());
  const auto y = Attr("y", DataType::Long());
  const auto inner = Call("spark_transform",
                          {Ref(rows->output[0]), lambda(y, Plus(Plus(variable(x), variable(y)), Ref(rows->output[1])))},
                          DataType::Array(DataType::Long()));
  const auto outer = Call("spark_transform", {Ref(rows->output[0]), lambda(x, inner)},
                          DataType::Array(DataType::Array(DataType::Long())));
  const auto list = [](std::vector<std::int64_t> values) {
    Value::List list;
    for (const auto value : values) {
      list.emplace_back(value);
    }
    return Value(std::move(list));
  };
  EXPECT_EQ(Run(Project(rows, {outer})), (Rows{{Value(Value::List{list({12, 13}), list({13, 14})})}, {Value()}}));
}

TEST_F(EngineTest, ObserversCountLeavesAndMetrics) {
  const auto range = Range(0, 1000);
  const auto id = Ref(range->output[0]);
  auto metrics = Node(PlanKind::kMetrics, {range});
  metrics->name = "m";
  metrics->exprs = {Agg("duck_count_star", {}, DataType::Long()), Agg("duck_max", {id}, DataType::Long())};
  const auto plan = plan::MakeFilter(metrics, Call("lt", {id, Lit(3)}, DataType::Boolean()));
  ExecuteOptions options;
  options.observer = std::make_shared<RunObserver>();
  EXPECT_EQ(Run(plan, options), Longs({{0}, {1}, {2}}));
  EXPECT_EQ(options.observer->LeafRows(range.get()), 1000);
  ASSERT_EQ(options.observer->metrics().size(), 1U);
  EXPECT_EQ(options.observer->metrics()[0].row, (Value::List{Value(1000), Value(999)}));
}

TEST_F(EngineTest, CancellingEndsARunSoon) {
  const auto a = Range(0, 100000000);
  const auto b = Range(0, 100000);
  auto join = Node(PlanKind::kJoin, {a, b});
  join->join_type = plan::JoinType::kInner;
  join->condition = Call("lt", {Mod(Ref(a->output[0]), 7), Mod(Ref(b->output[0]), 3)}, DataType::Boolean());
  join->output.push_back(b->output[0]);
  ExecuteOptions options;
  options.token = std::make_shared<CancellationToken>();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    options.token->Cancel();
  });
  const auto began = std::chrono::steady_clock::now();
  const auto result = TryRun(Aggregate(join, {}, {Agg("duck_count_star", {}, DataType::Long())}), options);
  canceller.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(1500));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
  EXPECT_EQ(Run(Range(0, 1)), Longs({{0}}));
}

TEST_F(EngineTest, CancellingWhileARunBeginsLeavesNoTaskBehind) {
  // Tasks that outlive their run use freed memory: the process would not survive this.
  for (int i = 0; i < 60; ++i) {
    const auto a = Range(0, 3000000000);
    ExecuteOptions options;
    options.token = std::make_shared<CancellationToken>();
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 50));
      options.token->Cancel();
    });
    const auto result =
        TryRun(Aggregate(a, {}, {Agg("duck_max", {Mod(Ref(a->output[0]), 7)}, DataType::Long())}), options);
    canceller.join();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
  }
}

class DeletedEven final : public plan::DeletedRows {
 public:
  std::int64_t count() const override { return 50; }
  std::int64_t Keep(std::int64_t start, std::int64_t count, std::uint32_t* kept) const override {
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < count; i++) {
      if ((start + i) % 2 != 0) {
        kept[n++] = static_cast<std::uint32_t>(i);
      }
    }
    return n;
  }
};

TEST_F(EngineTest, WrittenParquetIsReadBack) {
  const auto schema = *DataType::FromDdl(
      "id bigint, s struct<a: int, `B c`: string>, l array<struct<x: bigint>>, m map<string, int>, d decimal(20,3), "
      "t timestamp, p string");
  Rows rows;
  for (std::int64_t i = 0; i < 100; i++) {
    rows.push_back({Value(i), i % 7 == 0 ? Value() : Value(Value::List{Value(i), Value("v" + std::to_string(i))}),
                    Value(Value::List{Value(Value::List{Value(i)}), Value()}),
                    Value(Value::List{Value(Value::List{Value("k"), Value(i)})}), Value(types::Int128{i} * 1000),
                    Value(i * 1000000), i % 2 == 0 ? Value("a/b") : Value()});
  }
  WriteSpec spec;
  spec.folder = folder_ / "t";
  spec.partition_columns = {"p"};
  auto written = engine_->WriteFiles(RowsPlan(schema, rows), spec, {});
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  ASSERT_EQ(written->files.size(), 2U);
  EXPECT_EQ(written->row_count, 100);
  EXPECT_TRUE(written->files[0].relative_path.starts_with("p=a%2Fb/part-00000-")) << written->files[0].relative_path;
  EXPECT_TRUE(written->files[0].relative_path.ends_with("-c000.snappy.parquet"));
  EXPECT_TRUE(written->files[1].relative_path.starts_with("p=__HIVE_DEFAULT_PARTITION__/"));
  EXPECT_EQ(written->files[1].partition_values, (Value::List{Value()}));
  const auto& statistics = written->files[0].statistics;
  ASSERT_EQ(statistics.size(), 7U);
  EXPECT_EQ(statistics[0].max, Value(98));
  EXPECT_EQ(statistics[1].path, (std::vector<std::string>{"s", "a"}));
  EXPECT_EQ(statistics[1].null_count, 8);
  EXPECT_EQ(statistics[2].min, Value("v10"));

  // Read back: columns in another order, one missing, one wider, partition value, file metadata, row index.
  const auto scan_of = [&](bool deleted) {
    auto scan = std::make_shared<plan::FileScan>();
    scan->data_schema = *DataType::FromDdl(
        "S struct<`b C`: string, a: bigint, new: array<int>>, missing int, id bigint, l array<struct<x: bigint>>, "
        "m map<string, bigint>, d decimal(38,5), t timestamp");
    scan->partition_schema = *DataType::FromDdl("p string");
    scan->with_metadata = true;
    scan->with_row_index = true;
    for (const auto& file : written->files) {
      plan::ScanFile one;
      one.path = folder_ / "t" / file.relative_path;
      one.uri = "file:" + one.path;
      one.size_bytes = file.size_bytes;
      one.row_count = file.row_count;
      one.partition_values = file.partition_values;
      if (deleted) {
        one.deleted_rows = std::make_shared<DeletedEven>();
      }
      scan->files.push_back(one);
    }
    auto node = Node(PlanKind::kFileScan, {});
    for (const auto* part : {&scan->data_schema, &scan->partition_schema}) {
      for (const auto& field : part->fields()) {
        node->output.push_back(Attr(field.name, field.type));
      }
    }
    node->output.push_back(Attr("_metadata", plan::MetadataColumnType()));
    node->output.push_back(Attr("row", DataType::Long()));
    node->scan = scan;
    return PlanPtr(node);
  };
  const auto scan = scan_of(false);
  auto back = Run(scan);
  ASSERT_EQ(back.size(), 100U);
  EXPECT_EQ(back[1][0], Value(Value::List{Value("v2"), Value(2), Value()}));
  EXPECT_EQ(back[0][0], Value());
  EXPECT_EQ(back[1][1], Value());
  EXPECT_EQ(back[1][2], Value(2));
  EXPECT_EQ(back[1][3], Value(Value::List{Value(Value::List{Value(2)}), Value()}));
  EXPECT_EQ(back[1][4], Value(Value::List{Value(Value::List{Value("k"), Value(2)})}));
  EXPECT_EQ(back[1][5], Value(types::Int128{2} * 100000));
  EXPECT_EQ(back[1][6], Value(2000000));
  EXPECT_EQ(back[1][7], Value("a/b"));
  EXPECT_EQ(back[60][7], Value());
  EXPECT_EQ(back[1][8].list()[2], Value(written->files[0].size_bytes));
  EXPECT_EQ(back[1][9], Value(1));

  ExecuteOptions counted;
  counted.observer = std::make_shared<RunObserver>();
  const auto& id = scan->output[2];
  const auto filtered = Run(plan::MakeFilter(scan, Call("lt", {Ref(id), Lit(4)}, DataType::Boolean())), counted);
  EXPECT_EQ(filtered.size(), 4U);
  EXPECT_EQ(counted.observer->LeafRows(scan.get()), 100);
  EXPECT_EQ(Run(plan::MakeFilter(scan, Call("lt", {Ref(id), Lit(4)}, DataType::Boolean()))).size(), 4U);

  const auto kept = scan_of(true);
  auto odd = Run(Project(kept, {Ref(kept->output[2]), Ref(kept->output[9])}));
  ASSERT_EQ(odd.size(), 50U);
  EXPECT_EQ(odd[0], (Value::List{Value(2), Value(1)}));
  EXPECT_EQ(Run(Aggregate(kept, {}, {Agg("duck_count_star", {}, DataType::Long())})), Longs({{50}}));
  const auto in_partition =
      plan::MakeFilter(scan, Call("eq", {Ref(scan->output[7]), Text("a/b")}, DataType::Boolean()));
  EXPECT_EQ(Run(in_partition).size(), 50U);
}

TEST_F(EngineTest, FilesRollAndFailuresLeaveNothing) {
  WriteSpec spec;
  spec.folder = folder_ / "rolled";
  spec.max_file_rows = 300;
  auto written = engine_->WriteFiles(Range(0, 1000), spec, {});
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  ASSERT_EQ(written->files.size(), 4U);
  EXPECT_EQ(written->files[3].row_count, 100);
  EXPECT_EQ(written->files[1].statistics[0].min, Value(300));
  ExecuteOptions cancelled;
  cancelled.token = std::make_shared<CancellationToken>();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    cancelled.token->Cancel();
  });
  spec.folder = folder_ / "failed";
  auto failed = engine_->WriteFiles(Range(0, 10000000000), spec, cancelled);
  canceller.join();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind(), ErrorKind::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "failed"));
}

TEST_F(EngineTest, RowGroupsThatAnotherThreadEncodesAreTheSame) {
  WriteSpec spec;
  spec.row_group_rows = 4096;
  spec.target_file_bytes = 200000;
  const auto budget = std::make_shared<ResourceBudget>(2, 1 << 30);
  std::map<std::string, std::vector<std::string>> contents;
  for (const char* name : {"alone", "beside"}) {
    EngineOptions options;
    options.threads = 1;
    options.budget = name == std::string("beside") ? budget : nullptr;
    auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().ToString();
    spec.folder = folder_ / name;
    auto written = (*engine)->WriteFiles(Range(0, 100000), spec, {});
    ASSERT_TRUE(written.ok()) << written.error().ToString();
    for (const auto& file : written->files) {
      std::ifstream in(folder_ / name / file.relative_path, std::ios::binary);
      contents[name].emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  EXPECT_GT(contents["alone"].size(), 1U);
  EXPECT_EQ(contents["alone"], contents["beside"]);
  const auto one = budget->TryAcquire();
  const auto two = budget->TryAcquire();
  EXPECT_TRUE(one != nullptr && two != nullptr);
}

TEST_F(EngineTest, ARowGroupThatCannotBeWrittenFailsTheRun) {
  EngineOptions options;
  options.budget = std::make_shared<ResourceBudget>(2, 1 << 30);
  auto engine = Engine::Open(options);
  ASSERT_TRUE(engine.ok()) << engine.error().ToString();
  WriteSpec spec;
  spec.folder = folder_ / "too_large";
  spec.row_group_rows = 100000;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = (*engine)->WriteFiles(Range(0, 100000000), spec, {});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message(), testing::HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(spec.folder));
}

TEST_F(EngineTest, ColumnsAreFoundByFieldId) {
  const auto schema = *DataType::FromDdl("a bigint, s struct<x: bigint, y: string>");
  const auto with_ids = [](const char* one, const char* two, const char* x, const char* y) {
    const auto id = [](int n) { return Json(Json::Object{{"parquet.field.id", Json(n)}}); };
    return DataType::Struct(
        {{one, DataType::Long(), true, id(1)},
         {two, DataType::Struct({{x, DataType::Long(), true, id(3)}, {y, DataType::String(), true, id(4)}}), true,
          id(2)}});
  };
  WriteSpec spec;
  spec.folder = folder_ / "mapped";
  spec.physical_schema = with_ids("col-1", "col-2", "col-3", "col-4");
  auto written =
      engine_->WriteFiles(RowsPlan(schema, {{Value(1), Value(Value::List{Value(2), Value("three")})}}), spec, {});
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  EXPECT_EQ(written->files[0].statistics[2].path, (std::vector<std::string>{"col-2", "col-4"}));
  auto scan = std::make_shared<plan::FileScan>();
  scan->data_schema = *DataType::FromDdl("renamed struct<z: string, x: bigint>, a bigint");
  const auto physical = with_ids("?", "??", "???", "????");
  scan->physical_schema = DataType::Struct(
      {{"p", DataType::Struct({physical.fields()[1].type.fields()[1], physical.fields()[1].type.fields()[0]}), true,
        physical.fields()[1].metadata},
       physical.fields()[0]});
  scan->map_by_field_id = true;
  plan::ScanFile file;
  file.path = folder_ / "mapped" / written->files[0].relative_path;
  file.size_bytes = written->files[0].size_bytes;
  scan->files.push_back(file);
  auto node = Node(PlanKind::kFileScan, {});
  for (const auto& field : scan->data_schema.fields()) {
    node->output.push_back(Attr(field.name, field.type));
  }
  node->scan = scan;
  EXPECT_EQ(Run(node), (Rows{{Value(Value::List{Value("three"), Value(2)}), Value(1)}}));
}

TEST_F(EngineTest, CheckpointFilesAreWrittenAndRead) {
  const auto schema = *DataType::FromDdl("add struct<path: string, size: bigint, tags: map<string, string>>, v int");
  const Rows rows = {{Value(Value::List{Value("a"), Value(5), Value()}), Value()}, {Value(), Value(7)}};
  const auto batch = columnar::BatchFromRows(schema, rows);
  ASSERT_TRUE(batch.ok());
  const std::string path = folder_ / "c.checkpoint.parquet";
  auto size = MakeParquetWriter()->Write(path, schema, columnar::MakeReader(schema, {*batch}));
  ASSERT_TRUE(size.ok()) << size.error().ToString();
  EXPECT_EQ(static_cast<std::uintmax_t>(*size), std::filesystem::file_size(path));
  auto found = MakeParquetReader()->ReadSchema(path);
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(found->SimpleString(), schema.SimpleString());
  auto reader = MakeParquetReader()->Read(path, *DataType::FromDdl("v int, add struct<size: bigint>"));
  ASSERT_TRUE(reader.ok()) << reader.error().ToString();
  auto batches = ReadAll(**reader);
  ASSERT_TRUE(batches.ok());
  EXPECT_EQ(*columnar::RowsFromBatch(batches->at(0)),
            (Rows{{Value(), Value(Value::List{Value(5)})}, {Value(7), Value()}}));
  EXPECT_EQ(MakeParquetReader()->Read("/nowhere/x.parquet", schema).error().kind(), ErrorKind::kNotFound);
}

TEST_F(EngineTest, WrongTypesAreRefusedBeforeTheyRun) {
  const auto range = Range(0, 3);
  const auto wrong = TryRun(Project(range, {Call("duck_hex", {Ref(range->output[0])}, DataType::Long())}));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().condition(), "INTERNAL_ERROR");
  EXPECT_EQ(Run(Range(0, 1)), Longs({{0}}));
}

TEST_F(EngineTest, SmallBatchesAreCheap) {
  ASSERT_TRUE(engine_->SetThreads(1).ok());
  const auto range = Range(0, 1000);
  WriteSpec spec;
  spec.folder = folder_ / "small";
  auto written = engine_->WriteFiles(
      Project(range, {Ref(range->output[0]), Plus(Ref(range->output[0]), Lit(1)), Text("some text")}), spec, {});
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  auto scan = std::make_shared<plan::FileScan>();
  scan->data_schema = *DataType::FromDdl("id bigint");
  plan::ScanFile file;
  file.path = folder_ / "small" / written->files[0].relative_path;
  file.size_bytes = written->files[0].size_bytes;
  file.row_count = 1000;
  scan->files.push_back(file);
  auto node = Node(PlanKind::kFileScan, {});
  node->output = {Attr("id", DataType::Long())};
  node->scan = scan;
  const auto plan = Project(node, {Ref(node->output[0]), Plus(Ref(node->output[0]), Lit(1))});
  constexpr int kRuns = 200;
  const auto began = std::clock();
  for (int i = 0; i < kRuns; i++) {
    ASSERT_TRUE(engine_->WriteFiles(plan, spec, {}).ok());
  }
  const double cpu_ms = 1000.0 * static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC / kRuns;
  RecordProperty("cpu_ms_per_batch", std::to_string(cpu_ms));
  std::printf("%.3f ms CPU per batch\n", cpu_ms);
}

}  // namespace
}  // namespace fleuve::engine
