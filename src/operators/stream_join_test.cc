// Joins of two streams and sessions against what a batch gives, over random cuts of the input.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "columnar/ipc.h"
#include "operators/operators.h"
#include "plan/analyzer.h"
#include "plan/event_time.h"
#include "storage/memory_store.h"

namespace fleuve::operators {
namespace {

using plan::Attribute;
using plan::ExprPtr;
using plan::JoinType;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;
using types::DataType;
using types::Value;
using Row = Value::List;

constexpr std::int64_t kSecond = 1000000;

class FakeStream final : public plan::StreamRelation {
 public:
  explicit FakeStream(types::Schema schema) : schema_(std::move(schema)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return "fake"; }
  std::string provider() const override { return "fake"; }
  const plan::Options& options() const override { return options_; }

 private:
  types::Schema schema_;
  plan::Options options_;
};

Attribute Attr(const std::string& name, DataType type) {
  Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = name;
  attribute.type = std::move(type);
  return attribute;
}

/// A stream of (key INT, time TIMESTAMP, value BIGINT) with a watermark on its time.
PlanPtr MakeStream(const std::string& prefix, std::int64_t delay_micros) {
  auto leaf = std::make_shared<LogicalPlan>();
  leaf->kind = PlanKind::kStream;
  leaf->is_streaming = true;
  leaf->output = {Attr(prefix + "k", DataType::Int()), Attr(prefix + "t", DataType::Timestamp()),
                  Attr(prefix + "v", DataType::Long())};
  leaf->stream = std::make_shared<FakeStream>(plan::SchemaOf(*leaf));
  auto marked = std::make_shared<LogicalPlan>();
  marked->kind = PlanKind::kWatermark;
  marked->is_streaming = true;
  marked->children = {leaf};
  marked->event_time = leaf->output[1].id;
  marked->delay_micros = delay_micros;
  marked->output = plan::WithWatermark(leaf->output, marked->event_time, delay_micros);
  return marked;
}

ExprPtr Call(const std::string& name, std::vector<ExprPtr> children, DataType type) {
  return plan::MakeCall(name, std::move(children), std::move(type), true);
}

ExprPtr Later(const ExprPtr& time, std::int64_t micros) {
  return Call("spark_time_add",
              {time, plan::MakeLiteral(Value(micros), DataType::DayTimeInterval(0, 3)),
               plan::MakeLiteral(Value("UTC"), DataType::String())},
              DataType::Timestamp());
}

/// One query over its own store.
class Query {
 public:
  explicit Query(PlanPtr plan) : plan_(std::move(plan)), store_(storage::MemoryStore::Make()) {
    engine::EngineOptions options;
    options.threads = 1;
    auto engine = engine::Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message();
    engine_ = *std::move(engine);
    Start(0, "");
  }

  /// A new process: the state comes back from its files.
  void Restart() { Start(next_, state_->CommitIds()); }

  std::vector<Row> Run(std::vector<std::vector<Row>> inputs, std::int64_t late_ms, std::int64_t watermark_ms) {
    BatchRun run;
    run.attempt_id = "attempt" + std::to_string(next_);
    run.late_watermark_ms = late_ms;
    run.watermark_ms = watermark_ms;
    run.engine = engine_.get();
    run.bind = [&](const PlanPtr& fragment) { return Bind(fragment, inputs); };
    auto top = state_->Run(run);
    EXPECT_TRUE(top.ok()) << top.error().message();
    auto prepared = plan::Prepare(*top, run.config);
    EXPECT_TRUE(prepared.ok()) << prepared.error().message();
    auto reader = engine_->Execute(*prepared, {});
    EXPECT_TRUE(reader.ok()) << reader.error().message();
    auto batches = engine::ReadAll(**reader);
    EXPECT_TRUE(batches.ok()) << batches.error().message();
    std::vector<Row> rows;
    for (const auto& batch : *batches) {
      auto part = columnar::RowsFromBatch(batch);
      EXPECT_TRUE(part.ok());
      rows.insert(rows.end(), part->begin(), part->end());
    }
    EXPECT_TRUE(state_->Stage(watermark_ms).ok());
    EXPECT_TRUE(state_->Commit().ok());
    ++next_;
    return rows;
  }

  StateOperatorProgress progress() const { return state_->Progress()[0]; }

 private:
  void Start(std::int64_t next, const std::string& ids) {
    StatefulOptions options;
    options.checkpoint = {store_, "/cp"};
    auto made = StatefulQuery::Make(plan_, std::move(options));
    ASSERT_TRUE(made.ok()) << made.error().message();
    state_ = *std::move(made);
    auto opened = state_->Open(BatchId(next), ids);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
  }

  Result<PlanPtr> Bind(const PlanPtr& fragment, const std::vector<std::vector<Row>>& inputs) const {
    const auto leaves = plan::StreamingLeaves(plan_);
    return plan::RewritePlan(fragment, [&](const PlanPtr& node) -> PlanPtr {
      auto copy = std::make_shared<LogicalPlan>(*node);
      copy->is_streaming = false;
      if (node->kind == PlanKind::kStream) {
        copy->kind = PlanKind::kRows;
        auto rows = std::make_shared<plan::RowScan>();
        for (std::size_t i = 0; i < leaves.size(); ++i) {
          if (leaves[i]->stream == node->stream && !inputs[i].empty()) {
            rows->batches.push_back(columnar::BatchFromRows(plan::SchemaOf(*node), inputs[i]).value());
          }
        }
        copy->rows = std::move(rows);
      }
      return copy;
    });
  }

  PlanPtr plan_;
  std::shared_ptr<storage::MemoryStore> store_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<StatefulQuery> state_;
  std::int64_t next_ = 0;
};

struct Event {
  std::optional<int> key;
  std::int64_t time = 0;
  std::int64_t value = 0;
  Row AsRow() const { return {key ? Value(std::int64_t{*key}) : Value(), Value(time), Value(value)}; }
};

/// (left value or -1, right value or -1): a row of the output.
using Pairs = std::multiset<std::pair<std::int64_t, std::int64_t>>;

constexpr std::int64_t kDelay = 20 * kSecond;
constexpr std::int64_t kReach = 15 * kSecond;

PlanPtr JoinPlan(JoinType type) {
  const PlanPtr left = MakeStream("l", kDelay);
  const PlanPtr right = MakeStream("r", kDelay);
  auto join = std::make_shared<LogicalPlan>();
  join->kind = PlanKind::kJoin;
  join->is_streaming = true;
  join->join_type = type;
  join->children = {left, right};
  const auto l = [&](int i) { return plan::MakeAttribute(left->output[static_cast<std::size_t>(i)]); };
  const auto r = [&](int i) { return plan::MakeAttribute(right->output[static_cast<std::size_t>(i)]); };
  join->condition = plan::MakeAnd(
      Call("eq", {l(0), r(0)}, DataType::Boolean()),
      plan::MakeAnd(Call("ge", {r(1), l(1)}, DataType::Boolean()),
                    plan::MakeAnd(Call("le", {r(1), Later(l(1), kReach)}, DataType::Boolean()),
                                  Call("ne", {l(2), plan::MakeLiteral(Value(std::int64_t{7}), DataType::Long())},
                                       DataType::Boolean()))));
  join->output = left->output;
  if (type != JoinType::kLeftSemi) {
    join->output.insert(join->output.end(), right->output.begin(), right->output.end());
  }
  for (Attribute& attribute : join->output) {
    attribute.nullable = true;
  }
  return join;
}

Pairs Expected(JoinType type, const std::vector<Event>& left, const std::vector<Event>& right) {
  Pairs pairs;
  std::vector<bool> matched(right.size(), false);
  for (const Event& l : left) {
    bool met = false;
    for (std::size_t i = 0; i < right.size(); ++i) {
      const Event& r = right[i];
      if (l.key && r.key && *l.key == *r.key && r.time >= l.time && r.time <= l.time + kReach && l.value != 7) {
        met = matched[i] = true;
        if (type != JoinType::kLeftSemi) {
          pairs.insert({l.value, r.value});
        }
      }
    }
    if (type == JoinType::kLeftSemi && met) {
      pairs.insert({l.value, -1});
    }
    if (!met && (type == JoinType::kLeft || type == JoinType::kFull)) {
      pairs.insert({l.value, -1});
    }
  }
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (!matched[i] && (type == JoinType::kRight || type == JoinType::kFull)) {
      pairs.insert({-1, right[i].value});
    }
  }
  return pairs;
}

void Gather(const std::vector<Row>& rows, Pairs* pairs) {
  for (const Row& row : rows) {
    const std::int64_t left = row[2].is_null() ? -1 : row[2].integer();
    const std::int64_t right = row.size() < 6 || row[5].is_null() ? -1 : row[5].integer();
    if (left < 1000000 && right < 1000000) {
      pairs->insert({left, right});
    }
  }
}

class StreamJoinTest : public testing::TestWithParam<JoinType> {};

TEST_P(StreamJoinTest, AnyCutOfTheStreamsGivesTheRowsOfTheBatch) {
  std::mt19937_64 random(static_cast<unsigned>(GetParam()) + 11);
  for (int round = 0; round < 6; ++round) {
    Query query(JoinPlan(GetParam()));
    std::vector<Event> all[2];
    Pairs given;
    std::int64_t clock = 1000 * kSecond;
    std::int64_t greatest[2] = {0, 0};
    std::int64_t watermark = 0;
    std::int64_t late = 0;
    std::int64_t value = 0;
    for (int batch = 0; batch < 25; ++batch) {
      std::vector<std::vector<Row>> inputs(2);
      for (int side = 0; side < 2; ++side) {
        const int count = random() % 4 == 0 ? 0 : static_cast<int>(random() % 6);
        for (int i = 0; i < count; ++i) {
          clock += static_cast<std::int64_t>(random() % 3) * kSecond;
          Event event;
          if (random() % 10 != 0) {
            event.key = static_cast<int>(random() % 3);
          }
          // Disorder stays within the delay: nothing is late.
          event.time = clock - static_cast<std::int64_t>(random() % 18) * kSecond;
          event.value = value++;
          greatest[side] = std::max(greatest[side], event.time);
          inputs[static_cast<std::size_t>(side)].push_back(event.AsRow());
          all[side].push_back(event);
        }
      }
      Gather(query.Run(inputs, late / 1000, watermark / 1000), &given);
      EXPECT_EQ(query.progress().rows_dropped_by_watermark, 0);
      late = watermark;
      watermark = std::max(watermark, std::max<std::int64_t>(0, std::min(greatest[0], greatest[1]) - kDelay));
      if (random() % 5 == 0) {
        query.Restart();
      }
    }
    const Event last{9, clock + 1000 * kSecond, 1000000};
    Gather(query.Run({{last.AsRow()}, {last.AsRow()}}, late / 1000, watermark / 1000), &given);
    const std::int64_t end = (last.time - kDelay) / 1000;
    Gather(query.Run({{}, {}}, watermark / 1000, end), &given);
    EXPECT_EQ(given, Expected(GetParam(), all[0], all[1]));
    if (GetParam() != JoinType::kLeftSemi) {
      // Only the last two rows are left.
      EXPECT_EQ(query.progress().rows_total, 2);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, StreamJoinTest,
                         testing::Values(JoinType::kInner, JoinType::kLeft, JoinType::kRight, JoinType::kFull,
                                         JoinType::kLeftSemi));

TEST(StreamJoinRuleTest, LateRowsAreDroppedAndStateIsBounded) {
  Query query(JoinPlan(JoinType::kInner));
  const auto row = [](int key, std::int64_t seconds, std::int64_t value) {
    return Event{key, seconds * kSecond, value}.AsRow();
  };
  query.Run({{row(1, 100, 1)}, {}}, 0, 0);
  EXPECT_EQ(query.progress().rows_total, 1);
  EXPECT_EQ(query.progress().rows_updated, 1);
  // Left rows wait for right rows of the next 15 s.
  EXPECT_TRUE(query.Run({{}, {}}, 0, 114 * 1000).empty());
  EXPECT_EQ(query.progress().rows_total, 1);
  query.Run({{}, {}}, 114 * 1000, 116 * 1000);
  EXPECT_EQ(query.progress().rows_total, 0);
  EXPECT_EQ(query.progress().rows_removed, 1);
  query.Run({{row(1, 90, 2)}, {row(1, 116, 3), row(1, 117, 4)}}, 116 * 1000, 116 * 1000);
  EXPECT_EQ(query.progress().rows_dropped_by_watermark, 2);
  EXPECT_EQ(query.progress().rows_total, 1);
}

// ---- sessions ----

constexpr std::int64_t kGap = 5 * kSecond;

PlanPtr SessionPlan() {
  const PlanPtr input = MakeStream("", kDelay);
  auto node = std::make_shared<LogicalPlan>();
  node->kind = PlanKind::kAggregate;
  node->is_streaming = true;
  node->children = {input};
  const DataType session =
      DataType::Struct({{"start", DataType::Timestamp(), true, Json()}, {"end", DataType::Timestamp(), true, Json()}});
  const ExprPtr mark = Call(
      "spark_session_window",
      {plan::MakeAttribute(input->output[1]),
       plan::MakeLiteral(Value(types::CalendarInterval{0, 0, kGap}), DataType::Of(types::TypeKind::kCalendarInterval)),
       plan::MakeLiteral(Value("UTC"), DataType::String())},
      session);
  node->grouping = {mark, plan::MakeAttribute(input->output[0])};
  Attribute window = Attr("session_window", session);
  window.metadata = plan::EventTimeMetadata(*mark);
  node->output = {window, input->output[0]};
  for (const char* function : {"spark_sum", "spark_min"}) {
    auto call = std::make_shared<plan::Expr>();
    call->kind = plan::ExprKind::kAggregate;
    call->function = function;
    call->type = DataType::Long();
    call->children = {plan::MakeAttribute(input->output[2])};
    node->aggregates.push_back(call);
    node->output.push_back(Attr(function, DataType::Long()));
  }
  return node;
}

TEST(SessionWindowTest, AnyCutOfTheStreamGivesTheSessionsOfTheBatch) {
  std::mt19937_64 random(5);
  // (key or -1, start, end) -> (sum, least)
  using Sessions = std::multiset<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>>;
  for (int round = 0; round < 8; ++round) {
    Query query(SessionPlan());
    std::vector<Event> all;
    Sessions given;
    const auto gather = [&given](const std::vector<Row>& rows) {
      for (const Row& row : rows) {
        const auto& times = row[0].list();
        given.insert({row[1].is_null() ? -1 : row[1].integer(), times[0].integer(), times[1].integer(),
                      row[2].integer(), row[3].integer()});
      }
    };
    std::int64_t clock = 1000 * kSecond;
    std::int64_t greatest = 0;
    std::int64_t watermark = 0;
    std::int64_t late = 0;
    for (int batch = 0; batch < 20; ++batch) {
      std::vector<Row> input;
      for (auto i = random() % 6; i > 0; --i) {
        clock += static_cast<std::int64_t>(random() % 4) * kSecond;
        Event event;
        if (random() % 8 != 0) {
          event.key = static_cast<int>(random() % 3);
        }
        event.time = clock - static_cast<std::int64_t>(random() % 18) * kSecond;
        event.value = static_cast<std::int64_t>(random() % 100);
        greatest = std::max(greatest, event.time);
        input.push_back(event.AsRow());
        all.push_back(event);
      }
      gather(query.Run({input}, late / 1000, watermark / 1000));
      late = watermark;
      watermark = std::max(watermark, std::max<std::int64_t>(0, greatest - kDelay));
      if (random() % 5 == 0) {
        query.Restart();
      }
    }
    gather(query.Run({{}}, late / 1000, (clock + 1000 * kSecond) / 1000));
    EXPECT_EQ(query.progress().rows_total, 0);
    Sessions expected;
    std::map<std::int64_t, std::vector<Event>> by_key;
    for (const Event& event : all) {
      by_key[event.key ? *event.key : -1].push_back(event);
    }
    for (auto& [key, events] : by_key) {
      std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
      std::size_t first = 0;
      while (first < events.size()) {
        std::int64_t end = events[first].time + kGap;
        std::int64_t sum = events[first].value;
        std::int64_t least = events[first].value;
        std::size_t next = first + 1;
        for (; next < events.size() && events[next].time <= end; ++next) {
          end = events[next].time + kGap;
          sum += events[next].value;
          least = std::min(least, events[next].value);
        }
        expected.insert({key, events[first].time, end, sum, least});
        first = next;
      }
    }
    EXPECT_EQ(given, expected);
  }
}

}  // namespace
}  // namespace fleuve::operators
