// Reading a large batch while it runs.
//
// The plan is a union of a few operators that all draw from one reader, in turns: while one waits for the broker or
// builds its piece, the others work on theirs. So the records are read once, by one client, and what is done with them
// is done on several threads.

#include <set>
#include <utility>

#include "connectors/kafka/kafka_internal.h"
#include "plan/external.h"
#include "plan/logical_plan.h"

namespace fleuve::connectors::kafka {

namespace {

/// One piece: large enough that taking turns costs nothing.
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
/// How many operators share a reader.
constexpr int kRuns = 4;

/// One reading of the ranges. Threads: any, one at a time reads.
class Pass {
 public:
  Pass(std::unique_ptr<Consumer> own, Consumer* consumer, std::vector<columnar::RecordBatch> first,
       std::shared_ptr<const types::Schema> schema)
      : own_(std::move(own)),
        consumer_(consumer),
        schema_(std::move(schema)),
        ready_(std::make_move_iterator(first.begin()), std::make_move_iterator(first.end())) {}

  /// nullopt at the end. Whoever holds the turn waits for the broker; the others would have to wait for it as well.
  Result<std::optional<columnar::RecordBatch>> Next(const CancellationTokenPtr& token) {
    const std::lock_guard turn(turn_);
    if (ready_.empty() && !consumer_->at_end()) {
      FLEUVE_ASSIGN(auto batches, consumer_->ReadSome(schema_, kPieceBytes, token));
      ready_.assign(std::make_move_iterator(batches.begin()), std::make_move_iterator(batches.end()));
    }
    if (ready_.empty()) {
      return std::optional<columnar::RecordBatch>();
    }
    std::optional<columnar::RecordBatch> batch = std::move(ready_.front());
    ready_.pop_front();
    return batch;
  }
  /// True once everything was given.
  bool at_end() {
    const std::lock_guard turn(turn_);
    return ready_.empty() && consumer_->at_end();
  }

 private:
  const std::unique_ptr<Consumer> own_;
  Consumer* const consumer_;
  const std::shared_ptr<const types::Schema> schema_;
  std::mutex turn_;
  std::deque<columnar::RecordBatch> ready_;
};

/// What plans that belong together read: a pass each time they run. The first pass may be given; a plan that runs once
/// more (because its commit met another) reads again with a consumer of its own.
class Passes {
 public:
  Passes(std::shared_ptr<Pass> first, std::vector<OffsetRange> ranges, OpenConsumer open,
         std::shared_ptr<const types::Schema> schema)
      : ranges_(std::move(ranges)), open_(std::move(open)), schema_(std::move(schema)), pass_(std::move(first)) {}

  /// The pass that operator `run` takes part in: each takes part once, and nobody in one that was given up on the way.
  Result<std::shared_ptr<Pass>> For(int run) {
    const std::lock_guard lock(mutex_);
    const bool is_given_up = !runs_.empty() && pass_.use_count() == 1 && !pass_->at_end();
    if (pass_ == nullptr || runs_.contains(run) || is_given_up) {
      FLEUVE_ASSIGN(auto consumer, open_());
      FLEUVE_TRY(consumer->Begin(ranges_));
      Consumer* const reader = consumer.get();
      pass_ = std::make_shared<Pass>(std::move(consumer), reader, std::vector<columnar::RecordBatch>(), schema_);
      runs_.clear();
    }
    runs_.insert(run);
    return pass_;
  }

 private:
  const std::vector<OffsetRange> ranges_;
  const OpenConsumer open_;
  const std::shared_ptr<const types::Schema> schema_;
  std::mutex mutex_;
  /// Null until the first run where none was given. Runs hold it as long as they last.
  std::shared_ptr<Pass> pass_;
  std::set<int> runs_;
};

class FeedRun final : public plan::ExternalRun {
 public:
  FeedRun(std::shared_ptr<Pass> pass, CancellationTokenPtr token) : pass_(std::move(pass)), token_(std::move(token)) {}

  Result<plan::ExternalEvent> Next() override {
    FLEUVE_ASSIGN(auto batch, pass_->Next(token_));
    plan::ExternalEvent event;
    if (batch) {
      event.kind = plan::ExternalEvent::Kind::kOutput;
      event.batch = *std::move(batch);
    }
    return event;
  }
  Result<void> Give(const columnar::RecordBatch&) override {
    return Error::Internal("a reader of Kafka takes no rows");
  }
  Result<void> GiveEnd() override { return {}; }

 private:
  const std::shared_ptr<Pass> pass_;
  const CancellationTokenPtr token_;
};

class FeedRuntime final : public plan::ExternalRuntime {
 public:
  FeedRuntime(std::shared_ptr<Passes> passes, int run) : passes_(std::move(passes)), run_(run) {}

  Result<std::unique_ptr<plan::ExternalRun>> Start(const plan::ExternalOperator&, const types::Schema&,
                                                   const types::Schema&, CancellationTokenPtr token) override {
    FLEUVE_ASSIGN(auto pass, passes_->For(run_));
    return std::unique_ptr<plan::ExternalRun>(std::make_unique<FeedRun>(std::move(pass), std::move(token)));
  }
  Result<plan::ExternalTableShape> AnalyzeTableFunction(const plan::ExternalFunction&,
                                                        const std::vector<plan::ExternalArgument>&) override {
    return Error::Internal("a reader of Kafka is no table function");
  }

 private:
  const std::shared_ptr<Passes> passes_;
  const int run_;
};

std::vector<plan::PlanPtr> PlansOver(const std::shared_ptr<Passes>& passes, const types::Schema& schema) {
  std::vector<plan::PlanPtr> plans;
  for (int run = 0; run < kRuns; ++run) {
    // An operator stands over rows; this one asks for none.
    auto leaf = std::make_shared<plan::LogicalPlan>();
    leaf->kind = plan::PlanKind::kRows;
    leaf->output = plan::AttributesOf(types::DataType::Struct({{"none", types::DataType::Long(), true, Json()}}));
    leaf->rows = std::make_shared<plan::RowScan>();

    auto context = std::make_shared<plan::ExternalContext>();
    context->runtime = std::make_shared<FeedRuntime>(passes, run);
    auto function = std::make_shared<plan::ExternalFunction>();
    function->name = "kafka";
    function->type = schema;
    function->deterministic = false;
    function->context = context;
    plan::ExternalCall call;
    call.chain.push_back(std::move(function));
    call.arguments = {0};
    auto op = std::make_shared<plan::ExternalOperator>();
    op->kind = plan::ExternalKind::kMap;
    op->context = std::move(context);
    op->calls.push_back(std::move(call));

    auto read = std::make_shared<plan::LogicalPlan>();
    read->kind = plan::PlanKind::kExternal;
    read->exprs.push_back(plan::MakeAttribute(leaf->output.front()));
    read->external = std::move(op);
    read->output = plan::AttributesOf(schema);
    read->children.push_back(std::move(leaf));
    plans.push_back(std::move(read));
  }
  return plans;
}

}  // namespace

std::function<std::vector<plan::PlanPtr>()> Feed(Consumer* consumer, std::vector<columnar::RecordBatch> first,
                                                 std::vector<OffsetRange> ranges, OpenConsumer open,
                                                 std::shared_ptr<const types::Schema> schema) {
  // Shared by the copies of the function: one of their calls gets it.
  auto begun =
      std::make_shared<std::shared_ptr<Pass>>(std::make_shared<Pass>(nullptr, consumer, std::move(first), schema));
  return [begun = std::move(begun), ranges = std::move(ranges), open = std::move(open), schema = std::move(schema)] {
    return PlansOver(std::make_shared<Passes>(std::exchange(*begun, nullptr), ranges, open, schema), *schema);
  };
}

}  // namespace fleuve::connectors::kafka
