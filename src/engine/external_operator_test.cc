// Operators whose work is done elsewhere: what goes out, and how what comes back meets the rows that passed beside it.
#include <gtest/gtest.h>

#include <deque>

#include "columnar/ipc.h"
#include "engine/engine.h"
#include "plan/external.h"
#include "plan/logical_plan.h"

namespace fleuve::engine {
namespace {

using plan::Attribute;
using plan::ExternalEvent;
using plan::ExternalKind;
using types::DataType;
using types::Value;
using Rows = std::vector<Value::List>;

/// Gives back what `answer` makes of each batch, one batch late.
class EchoRun final : public plan::ExternalRun {
 public:
  using Answer = std::function<Rows(const Rows&)>;
  EchoRun(Answer answer, types::Schema output, std::vector<std::int64_t>* sizes)
      : answer_(std::move(answer)), output_(std::move(output)), sizes_(sizes) {}

  Result<ExternalEvent> Next() override {
    ExternalEvent event;
    if (waiting_.size() > 1 || (ended_ && !waiting_.empty())) {
      event.kind = ExternalEvent::Kind::kOutput;
      FLEUVE_ASSIGN(event.batch, columnar::BatchFromRows(output_, waiting_.front()));
      waiting_.pop_front();
      return event;
    }
    event.kind = ended_ ? ExternalEvent::Kind::kDone : ExternalEvent::Kind::kNeedInput;
    return event;
  }
  Result<void> Give(const columnar::RecordBatch& batch) override {
    sizes_->push_back(batch.row_count());
    FLEUVE_ASSIGN(const Rows rows, columnar::RowsFromBatch(batch));
    waiting_.push_back(answer_(rows));
    return {};
  }
  Result<void> GiveEnd() override {
    ended_ = true;
    return {};
  }

 private:
  Answer answer_;
  types::Schema output_;
  std::vector<std::int64_t>* sizes_;
  std::deque<Rows> waiting_;
  bool ended_ = false;
};

class EchoRuntime final : public plan::ExternalRuntime {
 public:
  explicit EchoRuntime(EchoRun::Answer answer) : answer_(std::move(answer)) {}
  Result<std::unique_ptr<plan::ExternalRun>> Start(const plan::ExternalOperator&, const types::Schema&,
                                                   const types::Schema& output, CancellationTokenPtr) override {
    return std::unique_ptr<plan::ExternalRun>(std::make_unique<EchoRun>(answer_, output, &sizes));
  }
  Result<plan::ExternalTableShape> AnalyzeTableFunction(const plan::ExternalFunction&,
                                                        const std::vector<plan::ExternalArgument>&) override {
    return Error::Internal("not asked");
  }
  std::vector<std::int64_t> sizes;

 private:
  EchoRun::Answer answer_;
};

Attribute Attr(const std::string& name, DataType type) {
  Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = name;
  attribute.type = std::move(type);
  return attribute;
}

std::shared_ptr<plan::LogicalPlan> Range(std::int64_t end) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kRange;
  node->range = {0, end, 1};
  node->output = {Attr("id", DataType::Long())};
  return node;
}

class ExternalOperatorTest : public testing::Test {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.threads = 2;
    options.memory_bytes = 256 << 20;
    auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.ok());
    engine_ = *std::move(engine);
  }

  plan::PlanPtr Over(plan::PlanPtr child, ExternalKind kind, DataType type, EchoRun::Answer answer,
                     std::int64_t batch_rows) {
    runtime_ = std::make_shared<EchoRuntime>(std::move(answer));
    auto context = std::make_shared<plan::ExternalContext>();
    context->runtime = runtime_;
    context->batch_rows = batch_rows;
    auto function = std::make_shared<plan::ExternalFunction>();
    function->eval_type = 100;
    function->type = type;
    auto op = std::make_shared<plan::ExternalOperator>();
    op->kind = kind;
    op->context = context;
    plan::ExternalCall call;
    call.chain.push_back(function);
    op->calls.push_back(call);
    auto node = std::make_shared<plan::LogicalPlan>();
    node->kind = plan::PlanKind::kExternal;
    node->external = op;
    node->exprs = {plan::MakeAttribute(child->output[0])};
    if (kind == ExternalKind::kEvaluate) {
      node->output = child->output;
      node->output.push_back(Attr("r", type));
    } else if (kind == ExternalKind::kTable) {
      node->output = child->output;
      for (const auto& field : type.fields()) {
        node->output.push_back(Attr(field.name, field.type));
      }
    } else {
      node->output = plan::AttributesOf(type);
    }
    node->children.push_back(std::move(child));
    return node;
  }

  Rows Run(const plan::PlanPtr& plan) {
    Rows rows;
    auto reader = engine_->Execute(plan, ExecuteOptions());
    EXPECT_TRUE(reader.ok()) << reader.error().ToString();
    auto batches = ReadAll(**reader);
    EXPECT_TRUE(batches.ok()) << batches.error().ToString();
    for (const auto& batch : *batches) {
      auto some = columnar::RowsFromBatch(batch);
      rows.insert(rows.end(), some->begin(), some->end());
    }
    return rows;
  }

  std::unique_ptr<Engine> engine_;
  std::shared_ptr<EchoRuntime> runtime_;
};

TEST_F(ExternalOperatorTest, AnswersStandBesideTheRowsTheyBelongTo) {
  const auto text = [](const Rows& rows) {
    Rows made;
    for (const auto& row : rows) {
      made.push_back({row[0].integer() % 7 == 0 ? Value()
                                                : Value("a text that is longer than what is kept inline " +
                                                        std::to_string(row[0].integer()))});
    }
    return made;
  };
  const Rows rows = Run(Over(Range(25000), ExternalKind::kEvaluate, DataType::String(), text, 3000));
  ASSERT_EQ(rows.size(), 25000U);
  for (std::int64_t i = 0; i < 25000; i++) {
    const auto& row = rows[static_cast<std::size_t>(i)];
    ASSERT_EQ(row[0].integer(), i);
    ASSERT_EQ(row[1].is_null(), i % 7 == 0);
    if (i % 7 != 0) {
      ASSERT_EQ(row[1].text(), "a text that is longer than what is kept inline " + std::to_string(i));
    }
  }
  EXPECT_EQ(runtime_->sizes, (std::vector<std::int64_t>{3000, 3000, 3000, 3000, 3000, 3000, 3000, 3000, 1000}));
}

TEST_F(ExternalOperatorTest, AnotherNumberOfRowsIsAnError) {
  const auto fewer = [](const Rows& rows) { return Rows(rows.begin(), rows.end() - 1); };
  auto reader = engine_->Execute(Over(Range(10), ExternalKind::kEvaluate, DataType::Long(), fewer, 100), {});
  // A run that is short enough fails while it begins, a longer one while it is read.
  const auto batches = reader.ok() ? ReadAll(**reader) : Result<std::vector<columnar::RecordBatch>>(reader.error());
  ASSERT_FALSE(batches.ok());
  EXPECT_NE(batches.error().message().find("another number of rows"), std::string::npos);
}

TEST_F(ExternalOperatorTest, RowsOfAFunctionFollowTheirInputRow) {
  std::int64_t next = 0;
  const auto repeat = [&next](const Rows& rows) {
    Rows made;
    for (const auto& row : rows) {
      for (std::int64_t i = 0; i < row[0].integer() % 4; i++) {
        made.push_back({Value(next), Value(i)});
      }
      next++;
    }
    return made;
  };
  const Rows rows = Run(
      Over(Range(5000), ExternalKind::kTable, DataType::Struct({{"i", DataType::Long(), true, Json()}}), repeat, 700));
  ASSERT_EQ(rows.size(), 7500U);
  std::size_t at = 0;
  for (std::int64_t i = 0; i < 5000; i++) {
    for (std::int64_t j = 0; j < i % 4; j++, at++) {
      ASSERT_EQ(rows[at][0].integer(), i);
      ASSERT_EQ(rows[at][1].integer(), j);
    }
  }
}

TEST_F(ExternalOperatorTest, RunsOfEqualKeysAreNumbered) {
  // Keys 0, 0, 0, NULL, NULL, NULL, 2, ...
  const auto schema = DataType::Struct({{"id", DataType::Long(), true, Json()}, {"k", DataType::Long(), true, Json()}});
  Rows input;
  for (std::int64_t i = 0; i < 10000; i++) {
    input.push_back({Value(i), i / 3 % 2 == 1 ? Value() : Value(i / 3)});
  }
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kRows;
  auto scan = std::make_shared<plan::RowScan>();
  scan->batches.push_back(*columnar::BatchFromRows(schema, input));
  leaf->rows = scan;
  leaf->output = plan::AttributesOf(schema);
  const auto same = [](const Rows& rows) { return rows; };
  auto type = DataType::Struct({{"g", DataType::Long(), true, Json()},
                                {"k", DataType::Long(), true, Json()},
                                {"v", DataType::Long(), true, Json()}});
  auto node = std::make_shared<plan::LogicalPlan>(*Over(leaf, ExternalKind::kGroupMap, type, same, 1000));
  node->grouping = {plan::MakeAttribute(leaf->output[1])};
  const Rows rows = Run(node);
  ASSERT_EQ(rows.size(), 10000U);
  for (std::int64_t i = 0; i < 10000; i++) {
    const auto& row = rows[static_cast<std::size_t>(i)];
    ASSERT_EQ(row[0].integer(), i / 3) << i;
    ASSERT_EQ(row[2].integer(), i);
  }
}

}  // namespace
}  // namespace fleuve::engine
