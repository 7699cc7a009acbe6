// Aggregation, deduplication and limits: a stream cut at random gives what a batch gives.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "columnar/ipc.h"
#include "operators/operators.h"
#include "operators/state_table.h"
#include "plan/analyzer.h"
#include "plan/event_time.h"
#include "plan/function_builder.h"
#include "storage/memory_store.h"

namespace fleuve::operators {
namespace {

using plan::Attribute;
using plan::ExprPtr;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;
using types::DataType;
using types::Value;
using Row = Value::List;
using Rows = std::vector<Row>;

constexpr std::int64_t kSecond = 1000000;

Attribute Attr(const std::string& name, DataType type) {
  Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = name;
  attribute.type = std::move(type);
  return attribute;
}

/// A leaf of (k STRING, t TIMESTAMP, n BIGINT, d DOUBLE, m DECIMAL(10,2), s STRING, b BOOLEAN).
std::shared_ptr<LogicalPlan> Leaf() {
  auto leaf = std::make_shared<LogicalPlan>();
  leaf->kind = PlanKind::kStream;
  leaf->is_streaming = true;
  leaf->output = {Attr("k", DataType::String()), Attr("t", DataType::Timestamp()),    Attr("n", DataType::Long()),
                  Attr("d", DataType::Double()), Attr("m", DataType::Decimal(10, 2)), Attr("s", DataType::String()),
                  Attr("b", DataType::Boolean())};
  return leaf;
}

PlanPtr WithWatermark(const PlanPtr& child, std::int64_t delay_micros) {
  auto node = std::make_shared<LogicalPlan>();
  node->kind = PlanKind::kWatermark;
  node->is_streaming = true;
  node->children = {child};
  node->event_time = child->output[1].id;
  node->delay_micros = delay_micros;
  node->output = plan::WithWatermark(child->output, node->event_time, delay_micros);
  return node;
}

ExprPtr Build(const std::string& name, std::vector<ExprPtr> arguments) {
  static const plan::AnalysisConfig config;
  plan::FunctionCall call;
  call.name = name;
  call.argument_names.resize(arguments.size());
  call.arguments = std::move(arguments);
  call.config = &config;
  auto made = plan::BuildFunction(call);
  EXPECT_TRUE(made.ok()) << name << ": " << made.error().message();
  return *made;
}

PlanPtr Aggregate(const PlanPtr& child, std::vector<ExprPtr> grouping, std::vector<ExprPtr> aggregates) {
  auto node = std::make_shared<LogicalPlan>();
  node->kind = PlanKind::kAggregate;
  node->is_streaming = child->is_streaming;
  node->children = {child};
  for (const auto& key : grouping) {
    Attribute attribute = Attr(key->display, key->type);
    attribute.metadata = plan::EventTimeMetadata(*key);
    node->output.push_back(std::move(attribute));
  }
  for (const auto& aggregate : aggregates) {
    node->output.push_back(Attr(aggregate->display, aggregate->type));
  }
  node->grouping = std::move(grouping);
  node->aggregates = std::move(aggregates);
  return node;
}

Row RandomRow(std::mt19937_64& random, std::int64_t time) {
  const auto maybe = [&random](Value value) { return random() % 8 == 0 ? Value() : value; };
  return {maybe(Value("k" + std::to_string(random() % 5))),
          maybe(Value(time)),
          maybe(Value(static_cast<std::int64_t>(random() % 50) - 20)),
          maybe(Value(static_cast<double>(random() % 1000) / 8 - 40)),
          maybe(Value(static_cast<types::Int128>(random() % 100000) - 30000)),
          maybe(Value("s" + std::to_string(random() % 9))),
          maybe(Value(random() % 2 == 0))};
}

/// The text of a value; doubles with nine digits, as their sums depend on the order.
std::string Text(const Value& value, const DataType& type) {
  using types::TypeKind;
  if (value.is_null()) {
    return "NULL";
  }
  switch (type.kind()) {
    case TypeKind::kBoolean:
      return value.boolean() ? "true" : "false";
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      char text[40];
      std::snprintf(text, sizeof(text), "%.9g", std::abs(value.real()) < 1e-9 ? 0.0 : value.real());
      return text;
    }
    case TypeKind::kDecimal:
      return types::DecimalToString(value.decimal(), type.scale());
    case TypeKind::kString:
    case TypeKind::kBinary:
      return value.text();
    case TypeKind::kArray: {
      std::string text = "[";
      for (const Value& item : value.list()) {
        text += Text(item, type.element()) + ",";
      }
      return text + "]";
    }
    case TypeKind::kStruct: {
      std::string text = "{";
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        text += Text(value.list()[i], type.fields()[i].type) + ",";
      }
      return text + "}";
    }
    default:
      return std::to_string(value.integer());
  }
}

/// Rows as texts, one per column.
std::vector<std::vector<std::string>> Texts(const Rows& rows, const types::Schema& schema) {
  std::vector<std::vector<std::string>> out;
  for (const Row& row : rows) {
    std::vector<std::string> line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line.push_back(Text(row[i], schema.fields()[i].type));
    }
    out.push_back(std::move(line));
  }
  std::sort(out.begin(), out.end());
  return out;
}

PlanPtr Bind(const PlanPtr& plan, const Rows& rows) {
  return plan::RewritePlan(plan, [&rows](const PlanPtr& node) -> PlanPtr {
    auto copy = std::make_shared<LogicalPlan>(*node);
    copy->is_streaming = false;
    if (node->kind == PlanKind::kStream) {
      auto scan = std::make_shared<plan::RowScan>();
      auto batch = columnar::BatchFromRows(plan::SchemaOf(*node), rows);
      EXPECT_TRUE(batch.ok()) << batch.error().message();
      if (!rows.empty()) {
        scan->batches.push_back(*batch);
      }
      copy->kind = PlanKind::kRows;
      copy->rows = std::move(scan);
    }
    return copy;
  });
}

engine::Engine& TestEngine() {
  // Never destroyed: at the end of the process the state of threads that DuckDB asks for is gone already.
  static engine::Engine* const engine = [] {
    engine::EngineOptions options;
    options.threads = 1;
    auto made = engine::Engine::Open(options);
    EXPECT_TRUE(made.ok());
    return std::move(made).value().release();
  }();
  return *engine;
}

Rows RunPlan(const PlanPtr& plan) {
  auto prepared = plan::Prepare(plan, plan::AnalysisConfig());
  EXPECT_TRUE(prepared.ok()) << prepared.error().message();
  auto reader = TestEngine().Execute(*prepared, {});
  EXPECT_TRUE(reader.ok()) << reader.error().message();
  auto batches = engine::ReadAll(**reader);
  EXPECT_TRUE(batches.ok()) << batches.error().message();
  Rows rows;
  for (const auto& batch : *batches) {
    auto part = columnar::RowsFromBatch(batch);
    EXPECT_TRUE(part.ok());
    rows.insert(rows.end(), part->begin(), part->end());
  }
  return rows;
}

class Query {
 public:
  Query(PlanPtr plan, std::string mode) : plan_(std::move(plan)), mode_(std::move(mode)) { Start(""); }

  /// A new process: the state comes back from its files.
  void Restart() { Start(state_->CommitIds()); }

  Rows Run(const Rows& input, std::int64_t late_ms = 0, std::int64_t watermark_ms = 0) {
    Rows rows = RunPlan(Begin(input, late_ms, watermark_ms));
    auto staged = state_->Stage(watermark_ms);
    EXPECT_TRUE(staged.ok()) << staged.error().message();
    EXPECT_TRUE(state_->Commit().ok());
    ++next_;
    return rows;
  }
  PlanPtr Begin(const Rows& input, std::int64_t late_ms = 0, std::int64_t watermark_ms = 0) {
    BatchRun run;
    run.attempt_id = "attempt" + std::to_string(++attempts_);
    run.late_watermark_ms = late_ms;
    run.watermark_ms = watermark_ms;
    run.engine = &TestEngine();
    run.bind = [input](const PlanPtr& fragment) -> Result<PlanPtr> { return Bind(fragment, input); };
    auto top = state_->Run(run);
    EXPECT_TRUE(top.ok()) << top.error().message();
    return *top;
  }
  StatefulQuery& state() { return *state_; }

 private:
  void Start(const std::string& ids) {
    StatefulOptions options;
    options.checkpoint = {store_, "/cp"};
    options.output_mode = mode_;
    auto made = StatefulQuery::Make(plan_, options);
    ASSERT_TRUE(made.ok()) << made.error().message();
    state_ = *std::move(made);
    auto opened = state_->Open(BatchId(next_), ids);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
  }

  PlanPtr plan_;
  std::string mode_;
  std::shared_ptr<storage::MemoryStore> store_ = storage::MemoryStore::Make();
  std::unique_ptr<StatefulQuery> state_;
  std::int64_t next_ = 0;
  int attempts_ = 0;
};

std::vector<ExprPtr> EveryAggregate(const LogicalPlan& leaf) {
  const auto column = [&leaf](int i) { return plan::MakeAttribute(leaf.output[static_cast<std::size_t>(i)]); };
  const auto literal = [](double value) { return plan::MakeLiteral(Value(value), DataType::Double()); };
  const ExprPtr n = column(2);
  const ExprPtr d = column(3);
  const ExprPtr m = column(4);
  const ExprPtr s = column(5);
  const ExprPtr b = column(6);
  return {Build("count", {n}),
          Build("count", {n, s}),
          Build("count_if", {b}),
          Build("sum", {n}),
          Build("sum", {d}),
          Build("sum", {m}),
          Build("try_sum", {n}),
          Build("try_sum", {m}),
          Build("avg", {n}),
          Build("avg", {d}),
          Build("avg", {m}),
          Build("try_avg", {m}),
          Build("min", {s}),
          Build("max", {d}),
          Build("min", {m}),
          Build("max", {b}),
          Build("first", {n}),
          Build("first", {s, plan::MakeLiteral(Value(true), DataType::Boolean())}),
          Build("last", {m}),
          Build("last", {d, plan::MakeLiteral(Value(true), DataType::Boolean())}),
          Build("any_value", {s}),
          Build("min_by", {s, n}),
          Build("max_by", {m, d}),
          Build("collect_list", {n}),
          Build("collect_set", {s}),
          Build("collect_set", {b}),
          Build("bool_and", {b}),
          Build("bool_or", {b}),
          Build("bit_and", {n}),
          Build("bit_or", {n}),
          Build("bit_xor", {n}),
          Build("listagg", {s, plan::MakeLiteral(Value("-"), DataType::String())}),
          Build("product", {d}),
          Build("mode", {s, plan::MakeLiteral(Value(true), DataType::Boolean())}),
          Build("approx_count_distinct", {n}),
          Build("stddev", {d}),
          Build("var_pop", {n}),
          Build("skewness", {d}),
          Build("kurtosis", {n}),
          Build("corr", {n, d}),
          Build("covar_samp", {n, d}),
          Build("regr_slope", {n, d}),
          Build("percentile", {d, literal(0.3)}),
          Build("approx_percentile", {n, literal(0.7)}),
          Build("median", {n}),
          Build("+", {Build("sum", {n}), Build("max", {n})})};
}

TEST(AggregationTest, AnyCutOfAStreamGivesTheBatchResult) {
  for (int seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    auto leaf = Leaf();
    const bool global = seed % 3 == 0;
    std::vector<ExprPtr> keys;
    if (!global) {
      keys = {plan::MakeAttribute(leaf->output[0])};
    }
    std::vector<ExprPtr> aggregates = EveryAggregate(*leaf);
    if (seed > 6) {
      // Only those that fold without the engine.
      std::erase_if(aggregates, [](const ExprPtr& aggregate) {
        const std::string& name = aggregate->function;
        return name != "duck_count" && name != "duck_count_star" && name != "spark_min" && name != "spark_max" &&
               !name.starts_with("spark_bit_") &&
               (name != "spark_sum" || aggregate->type.Is(types::TypeKind::kDecimal));
      });
      std::erase_if(aggregates, [](const ExprPtr& aggregate) {
        return aggregate->type.IsString() || aggregate->type.Is(types::TypeKind::kDecimal);
      });
    }
    const PlanPtr plan = Aggregate(leaf, keys, std::move(aggregates));
    const types::Schema schema = plan::SchemaOf(*plan);
    Query update(plan, "update");
    Query complete(plan, "complete");
    Rows all;
    std::map<std::string, std::vector<std::string>> latest;
    for (int batch = 0; batch < 8; ++batch) {
      Rows input;
      for (std::uint64_t i = random() % 40; i > 0; --i) {
        input.push_back(RandomRow(random, 0));
      }
      all.insert(all.end(), input.begin(), input.end());
      if (random() % 3 == 0) {
        update.Restart();
        complete.Restart();
      }
      if (random() % 3 == 0) {
        // A run that is given up leaves nothing behind.
        update.Begin(input);
        ASSERT_TRUE(update.state().Abort().ok());
      }
      for (const auto& row : Texts(update.Run(input), schema)) {
        latest[global ? "" : row[0]] = row;
      }
      const auto expected = Texts(RunPlan(Bind(plan, all)), schema);
      EXPECT_EQ(Texts(complete.Run(input), schema), expected) << "seed " << seed << " batch " << batch;
      std::vector<std::vector<std::string>> updated;
      for (const auto& [key, row] : latest) {
        updated.push_back(row);
      }
      std::sort(updated.begin(), updated.end());
      EXPECT_EQ(updated, expected) << "seed " << seed << " batch " << batch;
    }
  }
}

TEST(AggregationTest, WindowsComeOutOnceWhenTheWatermarkPasses) {
  std::mt19937_64 random(11);
  auto leaf = Leaf();
  const PlanPtr marked = WithWatermark(leaf, 10 * kSecond);
  const ExprPtr time = plan::MakeAttribute(marked->output[1]);
  const PlanPtr plan = Aggregate(marked, {time, plan::MakeAttribute(marked->output[0])},
                                 {Build("count", {plan::MakeAttribute(marked->output[2])})});
  const types::Schema schema = plan::SchemaOf(*plan);
  Query query(plan, "append");
  Rows in_time;
  Rows out;
  std::int64_t late = 0;
  std::int64_t watermark = 0;
  std::int64_t newest = 0;
  for (int batch = 0; batch < 12; ++batch) {
    Rows input;
    for (int i = 0; i < 30; ++i) {
      const std::int64_t second = batch * 4 + static_cast<std::int64_t>(random() % 20);
      Row row = RandomRow(random, second * kSecond);
      if (!row[1].is_null()) {
        newest = std::max(newest, row[1].integer());
        if (row[1].integer() > late * 1000) {
          in_time.push_back(row);
        }
      }
      input.push_back(std::move(row));
    }
    if (batch % 4 == 3) {
      query.Restart();
    }
    const Rows given = query.Run(input, late, watermark);
    out.insert(out.end(), given.begin(), given.end());
    late = watermark;
    watermark = std::max<std::int64_t>(watermark, (newest - 10 * kSecond) / 1000);
  }
  EXPECT_TRUE(query.state().NeedsBatch(newest / 1000 + 60000) || true);
  const Rows rest = query.Run({}, late, newest / 1000 + 60000);
  out.insert(out.end(), rest.begin(), rest.end());
  EXPECT_EQ(Texts(out, schema), Texts(RunPlan(Bind(plan, in_time)), schema));
  const auto progress = query.state().Progress();
  ASSERT_EQ(progress.size(), 1u);
  EXPECT_EQ(progress[0].operator_name, "stateStoreSave");
  EXPECT_EQ(progress[0].rows_removed, static_cast<std::int64_t>(rest.size()));
}

TEST(DeduplicationTest, TheFirstRowOfAKeyStays) {
  std::mt19937_64 random(5);
  auto leaf = Leaf();
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kDistinct;
  plan->is_streaming = true;
  plan->children = {leaf};
  plan->output = leaf->output;
  plan->keys = {leaf->output[0].id, leaf->output[3].id};
  const types::Schema schema = plan::SchemaOf(*plan);
  Query query(plan, "append");
  Rows all;
  Rows out;
  for (int batch = 0; batch < 6; ++batch) {
    Rows input;
    for (int i = 0; i < 20; ++i) {
      Row row = RandomRow(random, 0);
      row[3] = Value(random() % 2 == 0 ? 0.0 : -0.0);
      input.push_back(std::move(row));
    }
    all.insert(all.end(), input.begin(), input.end());
    if (batch == 3) {
      query.Restart();
    }
    const Rows given = query.Run(input);
    out.insert(out.end(), given.begin(), given.end());
  }
  EXPECT_EQ(Texts(out, schema), Texts(RunPlan(Bind(plan, all)), schema));
}

TEST(GlobalLimitTest, CountsOverAllBatches) {
  auto leaf = Leaf();
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kLimit;
  plan->is_streaming = true;
  plan->children = {leaf};
  plan->output = leaf->output;
  plan->count = 7;
  Query query(plan, "append");
  std::mt19937_64 random(1);
  std::size_t given = 0;
  for (int batch = 0; batch < 5; ++batch) {
    Rows input;
    for (int i = 0; i < 3; ++i) {
      input.push_back(RandomRow(random, 0));
    }
    query.Restart();
    given += query.Run(input).size();
    EXPECT_EQ(given, std::min<std::size_t>(7, static_cast<std::size_t>(batch + 1) * 3));
  }
}

TEST(StateTableTest, ShowsKeysAndStates) {
  auto leaf = Leaf();
  const std::string path = "memory:/state-table-test";
  auto location = storage::Resolve(path);
  ASSERT_TRUE(location.ok());
  StatefulOptions options;
  options.checkpoint = *location;
  options.output_mode = "update";
  const ExprPtr n = plan::MakeAttribute(leaf->output[2]);
  auto query = *StatefulQuery::Make(
      Aggregate(leaf, {plan::MakeAttribute(leaf->output[0])}, {Build("count", {n}), Build("max", {n})}), options);
  ASSERT_TRUE(query->Open(BatchId(0), "").ok());
  Row row(7);
  row[0] = Value("a");
  row[2] = Value(5);
  BatchRun run;
  run.attempt_id = "one";
  run.engine = &TestEngine();
  run.bind = [row](const PlanPtr& fragment) -> Result<PlanPtr> { return Bind(fragment, {row, row}); };
  ASSERT_TRUE(query->Run(run).ok());
  ASSERT_TRUE(query->Stage(0).ok());
  ASSERT_TRUE(query->Commit().ok());

  auto table = OpenStateTable({{"path", path}, {"batchId", "0"}});
  ASSERT_TRUE(table.ok()) << table.error().message();
  EXPECT_EQ((*table)->schema().SimpleString(), "struct<key:struct<" + leaf->output[0].name +
                                                   ":string>,value:struct<count:bigint,max:bigint>,partition_id:int>");
  auto rows = (*table)->PlanRows();
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ((*rows)->batches.size(), 1u);
  auto values = columnar::RowsFromBatch((*rows)->batches[0]);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(*values, (Rows{{Value(Row{Value("a")}), Value(Row{Value(2), Value(5)}), Value(0)}}));

  EXPECT_EQ(OpenStateTable({}).error().condition(), "STDS_REQUIRED_OPTION_UNSPECIFIED");
  EXPECT_EQ(OpenStateTable({{"path", path}}).error().condition(), "STDS_COMMITTED_BATCH_UNAVAILABLE");
  EXPECT_EQ(OpenStateTable({{"path", path}, {"batchId", "-2"}}).error().condition(),
            "STDS_INVALID_OPTION_VALUE.IS_NEGATIVE");
  EXPECT_EQ(OpenStateTable({{"path", path}, {"batchId", "0"}, {"joinSide", "left"}}).error().kind(),
            ErrorKind::kUnsupported);
}

TEST(StatefulQueryTest, OtherOperatorsAreRefused) {
  auto leaf = Leaf();
  const auto store = storage::MemoryStore::Make();
  const auto make = [&](const PlanPtr& plan) {
    StatefulOptions options;
    options.checkpoint = {store, "/cp"};
    options.output_mode = "update";
    return *StatefulQuery::Make(plan, options);
  };
  const ExprPtr key = plan::MakeAttribute(leaf->output[0]);
  const ExprPtr n = plan::MakeAttribute(leaf->output[2]);
  const PlanPtr plan = Aggregate(leaf, {key}, {Build("count", {n})});
  auto query = make(plan);
  ASSERT_TRUE(query->Open(BatchId(0), "").ok());
  BatchRun run;
  run.attempt_id = "one";
  run.engine = &TestEngine();
  run.bind = [](const PlanPtr& fragment) -> Result<PlanPtr> { return Bind(fragment, {}); };
  ASSERT_TRUE(query->Run(run).ok());
  ASSERT_TRUE(query->Stage(0).ok());
  ASSERT_TRUE(query->Commit().ok());
  const std::string ids = query->CommitIds();
  EXPECT_EQ(ids, "{\"0\":[[\"one\"]]}");

  EXPECT_TRUE(make(plan)->Open(BatchId(1), ids).ok());
  auto opened = make(leaf)->Open(BatchId(1), ids);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().condition(), "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA");
  opened = make(Aggregate(leaf, {key, n}, {Build("count", {n})}))->Open(BatchId(1), ids);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().condition(), "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE");
  opened = make(Aggregate(leaf, {key}, {Build("sum", {n})}))->Open(BatchId(1), ids);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().condition(), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE");

  // The sink has batch 0 of this attempt: its state is taken over without a run.
  auto adopting = make(plan);
  auto adopted = adopting->Adopt(BatchId(0), "one");
  ASSERT_TRUE(adopted.ok());
  EXPECT_TRUE(adopted->has_value());
  EXPECT_EQ(adopting->CommitIds(), ids);
  adopted = make(plan)->Adopt(BatchId(0), "two");
  ASSERT_TRUE(adopted.ok());
  EXPECT_FALSE(adopted->has_value());
}

}  // namespace
}  // namespace fleuve::operators
