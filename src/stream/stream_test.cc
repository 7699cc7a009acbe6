#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "base/ids.h"
#include "columnar/ipc.h"
#include "storage/memory_store.h"
#include "stream/progress_internal.h"
#include "stream/query_internal.h"

namespace fleuve::stream {
namespace {

class NumberRelation final : public plan::StreamRelation {
 public:
  NumberRelation() : schema_(types::DataType::Struct({{"n", types::DataType::Long(), true, {}}})) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return "numbers"; }
  std::string provider() const override { return "numbers"; }
  const plan::Options& options() const override { return options_; }

 private:
  types::Schema schema_;
  plan::Options options_;
};

std::weak_ptr<const plan::RowScan> rows_of_last_batch;

/// Gives one number a batch, up to `available`.
class NumberSource final : public connectors::Source {
 public:
  explicit NumberSource(std::shared_ptr<std::atomic<int>> available) : available_(std::move(available)) {}
  const types::Schema& schema() const override { return relation_.schema(); }
  std::string description() const override { return "Numbers[]"; }
  bool offsets_stand_alone() const override { return true; }
  Result<std::optional<connectors::Offset>> InitialOffset() override { return std::optional<connectors::Offset>(); }
  Result<std::optional<connectors::Offset>> LatestOffset(const std::optional<connectors::Offset>& start,
                                                         connectors::Admission admission) override {
    const int from = start ? std::stoi(*start) : 0;
    const int end = std::min(available_->load(), admission == connectors::Admission::kAllAvailable ? 1000 : from + 1);
    if (end == from) {
      return start;
    }
    return std::optional<connectors::Offset>(std::to_string(end));
  }
  Result<void> PrepareForAvailableNow() override { return {}; }
  Result<connectors::BatchInput> Read(const std::optional<connectors::Offset>& start,
                                      const connectors::Offset& end) override {
    connectors::BatchInput input;
    input.row_count = std::stoi(end) - (start ? std::stoi(*start) : 0);
    auto rows = std::make_shared<plan::RowScan>();
    rows->batches.push_back(*columnar::BatchFromRows(relation_.schema(), {{types::Value(std::int64_t{1})}}));
    input.rows = std::move(rows);
    rows_of_last_batch = input.rows;
    return input;
  }
  bool SetDataListener(std::function<void()> callback) override {
    (void)callback;
    return false;
  }

 private:
  NumberRelation relation_;
  std::shared_ptr<std::atomic<int>> available_;
};

class NumberProvider final : public connectors::SourceProvider {
 public:
  explicit NumberProvider(std::shared_ptr<std::atomic<int>> available) : available_(std::move(available)) {}
  Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const connectors::StreamRequest&,
                                                              const plan::AnalysisConfig&) override {
    return std::shared_ptr<const plan::StreamRelation>(std::make_shared<NumberRelation>());
  }
  Result<std::unique_ptr<connectors::Source>> MakeSource(const std::shared_ptr<const plan::StreamRelation>&,
                                                         const connectors::SourceContext&) override {
    return std::unique_ptr<connectors::Source>(std::make_unique<NumberSource>(available_));
  }

 private:
  std::shared_ptr<std::atomic<int>> available_;
};

constexpr const char* kLog = "/out/_log";

/// A table in a store: a data file and a log entry per batch, as Delta has them. The log entry's text is
/// `<batch> <end offset> <data file>`.
class LogSink final : public connectors::Sink {
 public:
  explicit LogSink(std::shared_ptr<storage::ObjectStore> store) : store_(std::move(store)) {}
  std::string description() const override { return "Log[]"; }
  storage::ObjectStore* store() const override { return store_.get(); }

  Result<connectors::SinkRecord> Newest() override {
    connectors::SinkRecord record;
    auto listed = store_->List(kLog);
    if (!listed.ok() && listed.error().kind() != ErrorKind::kNotFound) {
      return std::move(listed).error();
    }
    for (const auto& object : listed.ok() ? *listed : std::vector<storage::ObjectMeta>{}) {
      const std::string name = object.path.substr(object.path.rfind('/') + 1);
      if (name[0] != '.') {
        ++version_;
        record.newest_batch = std::max<std::int64_t>(record.newest_batch, std::stoll(name));
      }
    }
    newest_ = record.newest_batch;
    return record;
  }
  Result<connectors::SinkRecord> FindBatch(BatchId batch) override {
    connectors::SinkRecord record;
    FLEUVE_ASSIGN(const std::string text, store_->Get(std::string(kLog) + "/" + std::to_string(batch.value)));
    record.newest_batch = batch.value;
    record.offsets.push_back(text.substr(text.find(' ') + 1, text.rfind(' ') - text.find(' ') - 1));
    record.after_commit.folders.push_back(kLog);
    return record;
  }

  class Staged final : public connectors::StagedBatch {
   public:
    Staged(std::shared_ptr<storage::ObjectStore> store, std::string data, std::string staged, std::string path)
        : store_(std::move(store)), data_(std::move(data)), staged_(std::move(staged)), path_(std::move(path)) {}
    connectors::DurableRecords BeforeCommit() override { return {{data_, staged_}, {"/", "/out", kLog}}; }
    Result<connectors::CommitOutcome> Commit() override {
      auto done = store_->CommitStaged(staged_, path_);
      if (!done.ok()) {
        return done.error().kind() == ErrorKind::kAlreadyExists
                   ? Result<connectors::CommitOutcome>(connectors::CommitOutcome::kAlreadyThere)
                   : Result<connectors::CommitOutcome>(std::move(done).error());
      }
      return connectors::CommitOutcome::kCommitted;
    }
    connectors::DurableRecords AfterCommit() override { return {{}, {kLog}}; }

   private:
    std::shared_ptr<storage::ObjectStore> store_;
    const std::string data_;
    const std::string staged_;
    const std::string path_;
  };
  class Held final : public connectors::StagedBatch {
   public:
    bool already_there() const override { return true; }
    Result<connectors::CommitOutcome> Commit() override { return connectors::CommitOutcome::kAlreadyThere; }
    connectors::DurableRecords AfterCommit() override { return {{}, {kLog}}; }
  };

  Result<std::unique_ptr<connectors::StagedBatch>> Run(const connectors::SinkBatch& batch) override {
    const std::string path = std::string(kLog) + "/" + std::to_string(batch.batch_id.value);
    if (store_->Head(path).ok()) {
      return std::unique_ptr<connectors::StagedBatch>(std::make_unique<Held>());
    }
    const std::string data = "/out/data-" + batch.attempt_id;
    FLEUVE_TRY(store_->Put(data, "rows", storage::PutMode::kIfAbsent));
    const std::string text =
        std::to_string(batch.batch_id.value) + " " + batch.commit_fields["offsets"].items()[0].AsString() + " " + data;
    FLEUVE_ASSIGN(std::string staged, store_->Stage(path, text, batch.attempt_id));
    return std::unique_ptr<connectors::StagedBatch>(std::make_unique<Staged>(store_, data, std::move(staged), path));
  }

 private:
  std::shared_ptr<storage::ObjectStore> store_;
  std::int64_t newest_ = -1;
  int version_ = 0;
};

/// A process: what it starts sees the store through `store`.
struct Started {
  std::shared_ptr<MicroBatchQuery> query;
  std::optional<Error> start_error;
};

plan::PlanPtr StreamPlan() {
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kStream;
  leaf->is_streaming = true;
  leaf->stream = std::make_shared<NumberRelation>();
  plan::Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = "n";
  attribute.type = types::DataType::Long();
  leaf->output.push_back(attribute);
  return leaf;
}

/// A plan with state: a limit over the whole life of the query, which nobody reaches.
plan::PlanPtr LimitedPlan() {
  auto limit = std::make_shared<plan::LogicalPlan>();
  limit->kind = plan::PlanKind::kLimit;
  limit->is_streaming = true;
  limit->children = {StreamPlan()};
  limit->output = limit->children[0]->output;
  limit->count = 1000;
  return limit;
}

/// Never destroyed: at the end of the process the state of threads that DuckDB asks for is gone already.
std::shared_ptr<engine::Engine> TestEngine() {
  static const auto* const engine = new std::shared_ptr<engine::Engine>([] {
    engine::EngineOptions options;
    options.threads = 1;
    return engine::Engine::Open(options).value();
  }());
  return *engine;
}

/// What listeners heard.
struct Events {
  std::mutex mutex;
  std::vector<std::pair<EventKind, std::string>> seen;
};

Started StartQuery(const std::shared_ptr<storage::ObjectStore>& store,
                   const std::shared_ptr<std::atomic<int>>& available, TriggerSpec trigger,
                   const std::shared_ptr<Events>& events = std::make_shared<Events>(),
                   std::map<std::string, std::string> conf = {}, plan::PlanPtr plan = StreamPlan()) {
  auto registry = std::make_shared<connectors::ConnectorRegistry>();
  registry->AddSource("numbers", std::make_shared<NumberProvider>(available));
  auto host = std::make_shared<LoopHost>();
  host->options.connectors = registry;
  host->engines = EnginePool::Make([] { return Result<std::shared_ptr<engine::Engine>>(TestEngine()); }, 1);
  host->post = [events](EventKind kind, const std::string&, std::string json) {
    std::lock_guard lock(events->mutex);
    events->seen.emplace_back(kind, std::move(json));
  };
  host->ended = [](const QueryPtr&) {};
  MicroBatchQuery::Parts parts;
  parts.request.plan = std::move(plan);
  parts.request.trigger = trigger;
  parts.request.session_key = "s";
  parts.request.config.conf = [conf](const std::string& key) -> std::optional<std::string> {
    const auto it = conf.find(key);
    return it == conf.end() ? std::nullopt : std::optional<std::string>(it->second);
  };
  parts.host = host;
  Started run;
  auto checkpoint = checkpoint::Checkpoint::Open({store, "/cp"}, true);
  if (!checkpoint.ok()) {
    run.start_error = std::move(checkpoint).error();
    return run;
  }
  parts.checkpoint = *std::move(checkpoint);
  parts.sink = std::make_unique<LogSink>(store);
  parts.run_id = NewUuid();
  run.query = std::make_shared<MicroBatchQuery>(std::move(parts));
  run.query->Begin();
  return run;
}

/// Every number from 1 to `count` once, in batches 0..count-1.
void ExpectExactlyOnce(storage::ObjectStore& store, int count, const std::string& when) {
  for (int batch = 0; batch < count; ++batch) {
    const auto text = store.Get(std::string(kLog) + "/" + std::to_string(batch));
    ASSERT_TRUE(text.ok()) << when << ": batch " << batch << " is missing";
    const std::string expected = std::to_string(batch) + " " + std::to_string(batch + 1) + " ";
    EXPECT_EQ(text->substr(0, expected.size()), expected) << when;
    EXPECT_TRUE(store.Get(text->substr(expected.size())).ok()) << when << ": data of batch " << batch << " is missing";
    EXPECT_TRUE(store.Get("/cp/commits/" + std::to_string(batch)).ok()) << when;
    EXPECT_TRUE(store.Get("/cp/offsets/" + std::to_string(batch)).ok()) << when;
  }
  EXPECT_FALSE(store.Get(std::string(kLog) + "/" + std::to_string(count)).ok()) << when;
}

constexpr TriggerSpec kAvailableNow{TriggerKind::kAvailableNow, 0};

/// The process dies before (or after) its Nth call to the store; then the power goes (every unsynced byte is lost) or
/// only the process; a new process must bring each number to the table exactly once.
TEST(PowerCutTest, EveryStepOfTheCommitOrder) {
  for (const bool power_cut : {true, false}) {
    for (const bool after : {false, true}) {
      int calls_of_whole_run = 1000;
      for (int die_at = 1; die_at <= calls_of_whole_run; ++die_at) {
        auto memory = storage::MemoryStore::Make();
        auto available = std::make_shared<std::atomic<int>>(3);
        auto calls = std::make_shared<std::atomic<int>>(0);
        auto dying = storage::MakeFaultyStore(memory, [calls, die_at, after](std::string_view, std::string_view) {
          const int call = ++*calls;
          if (call == die_at && after) {
            return storage::Fault::kFailAfter;
          }
          return call >= die_at ? storage::Fault::kFailBefore : storage::Fault::kNone;
        });
        {
          Started first = StartQuery(dying, available, kAvailableNow);
          if (first.query) {
            EXPECT_NE(first.query, nullptr);
            (void)first.query->AwaitTermination(std::nullopt, nullptr).ok();  // it dies
          }
        }
        if (calls->load() < die_at) {
          calls_of_whole_run = 0;  // the whole run passed without dying
        }
        if (power_cut) {
          memory->PowerCut();
        }
        memory->DeleteAll("/cp/.fleuve/lock").IgnoreBecause("the dead process's lock");
        memory->Delete("/cp/.fleuve/lock").IgnoreBecause("the dead process's lock");
        available->store(5);
        const std::string when = std::string(power_cut ? "power cut " : "killed ") + (after ? "after" : "before") +
                                 " call " + std::to_string(die_at);
        Started second = StartQuery(memory, available, kAvailableNow);
        ASSERT_TRUE(second.query) << when << ": " << second.start_error->ToString();
        const auto ended = second.query->AwaitTermination(std::nullopt, nullptr);
        ASSERT_TRUE(ended.ok()) << when << ": " << second.query->failure()->description;
        ExpectExactlyOnce(*memory, 5, when);
        if (HasFailure()) {
          return;
        }
      }
    }
  }
}

/// The process dies; the next one finds what it left, has nothing new to do and rests; then the power goes. What the
/// second one held for done must be there, with state and without.
TEST(PowerCutTest, WhatADeadRunCommittedIsDurableBeforeItCounts) {
  for (const bool with_state : {false, true}) {
    const auto plan = [with_state] { return with_state ? LimitedPlan() : StreamPlan(); };
    int calls_of_whole_run = 1000;
    for (int die_at = 1; die_at <= calls_of_whole_run; ++die_at) {
      auto memory = storage::MemoryStore::Make();
      auto available = std::make_shared<std::atomic<int>>(2);
      auto calls = std::make_shared<std::atomic<int>>(0);
      auto dying = storage::MakeFaultyStore(memory, [calls, die_at](std::string_view, std::string_view) {
        return ++*calls >= die_at ? storage::Fault::kFailBefore : storage::Fault::kNone;
      });
      const auto run = [&](const std::shared_ptr<storage::ObjectStore>& store) {
        memory->Delete("/cp/.fleuve/lock").IgnoreBecause("the dead process's lock");
        Started started = StartQuery(store, available, kAvailableNow, std::make_shared<Events>(), {}, plan());
        return started.query ? started.query->AwaitTermination(std::nullopt, nullptr).ok() : false;
      };
      run(dying);
      if (calls->load() < die_at) {
        calls_of_whole_run = 0;
      }
      const std::string when = std::string(with_state ? "with" : "without") + " state, call " + std::to_string(die_at);
      ASSERT_TRUE(run(memory)) << when;
      memory->PowerCut();
      available->store(4);
      ASSERT_TRUE(run(memory)) << when;
      ExpectExactlyOnce(*memory, 4, when);
      if (HasFailure()) {
        return;
      }
    }
  }
}

TEST(RecoveryTest, SinkAheadOfARestoredCheckpointIsFollowed) {
  auto memory = storage::MemoryStore::Make();
  auto available = std::make_shared<std::atomic<int>>(2);
  ASSERT_TRUE(StartQuery(memory, available, kAvailableNow).query->AwaitTermination(std::nullopt, nullptr).ok());
  std::map<std::string, std::string> copy;
  const auto objects = memory->ListRecursive("/cp");
  for (const auto& object : *objects) {
    copy[object.path] = *memory->Get(object.path);
  }
  available->store(4);
  ASSERT_TRUE(StartQuery(memory, available, kAvailableNow).query->AwaitTermination(std::nullopt, nullptr).ok());
  ASSERT_TRUE(memory->DeleteAll("/cp").ok());
  for (const auto& [path, text] : copy) {
    ASSERT_TRUE(memory->Put(path, text, storage::PutMode::kOverwrite).ok());
  }
  memory->Delete("/cp/.fleuve/lock").IgnoreBecause("not part of the copy");
  available->store(6);
  Started run = StartQuery(memory, available, kAvailableNow);
  ASSERT_TRUE(run.query) << run.start_error->ToString();
  const auto ended = run.query->AwaitTermination(std::nullopt, nullptr);
  ASSERT_TRUE(ended.ok()) << run.query->failure()->description;
  ExpectExactlyOnce(*memory, 6, "restored");
}

TEST(QueryTest, ProcessAllAvailableStopAndProgress) {
  auto memory = storage::MemoryStore::Make();
  auto available = std::make_shared<std::atomic<int>>(0);
  auto events = std::make_shared<Events>();
  Started run = StartQuery(memory, available, {}, events);
  ASSERT_TRUE(run.query);
  ASSERT_TRUE(run.query->ProcessAllAvailable(nullptr).ok());
  EXPECT_FALSE(*run.query->AwaitTermination(1, nullptr));
  available->store(3);
  ASSERT_TRUE(run.query->ProcessAllAvailable(nullptr).ok());
  ExpectExactlyOnce(*memory, 3, "running");
  EXPECT_TRUE(run.query->is_active());
  EXPECT_TRUE(rows_of_last_batch.expired()) << "the rows of a batch leave the memory with the batch";
  ASSERT_TRUE(run.query->Stop().ok());
  ASSERT_TRUE(run.query->Stop().ok());
  EXPECT_FALSE(run.query->is_active());
  EXPECT_EQ(run.query->status().message, "Stopped");
  EXPECT_FALSE(run.query->failure().has_value());
  EXPECT_TRUE(*run.query->AwaitTermination(std::nullopt, nullptr));
  const auto progress = run.query->RecentProgress();
  ASSERT_EQ(progress.size(), 4U);  // one idle, three batches
  const Json last = *Json::Parse(progress.back());
  EXPECT_EQ(last["batchId"].AsInt(), 2);
  EXPECT_EQ(last["sources"].items()[0]["startOffset"].AsString(), "2");
  EXPECT_EQ(last["sources"].items()[0]["endOffset"].AsString(), "3");
  EXPECT_EQ(last["sources"].items()[0]["numInputRows"].AsInt(), 1);
  for (const char* key : {"latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets",
                          "triggerExecution", "syncBeforeCommit", "syncAfterCommit"}) {
    EXPECT_NE(last["durationMs"].Find(key), nullptr) << key;
  }
  std::lock_guard lock(events->mutex);
  EXPECT_EQ(events->seen.back().first, EventKind::kTerminated);
  EXPECT_NE(events->seen.back().second.find("\"exception\":null"), std::string::npos);
}

TEST(QueryTest, AFailureIsWrapped) {
  auto memory = storage::MemoryStore::Make();
  ASSERT_TRUE(memory->Put("/cp/metadata", checkpoint::EncodeMetadata("an-id"), storage::PutMode::kOverwrite).ok());
  ASSERT_TRUE(memory->Put("/cp/offsets/0", "v9\n{}\n1", storage::PutMode::kOverwrite).ok());
  Started run = StartQuery(memory, std::make_shared<std::atomic<int>>(1), kAvailableNow);
  const auto ended = run.query->AwaitTermination(std::nullopt, nullptr);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().condition(), "STREAM_FAILED");
  EXPECT_EQ(ended.error().message().find("Query [id = an-id, runId = "), 0U);
  EXPECT_NE(ended.error().message().find("The maximum supported log version is v2, but encountered v9"),
            std::string::npos);
  EXPECT_EQ(run.query->status().message.find("Terminated with exception: Failed to read log file"), 0U);
  EXPECT_NE(run.query->failure()->description.find("=== Streaming Query ===\nIdentifier: [id = an-id, runId = "),
            std::string::npos);
}

TEST(RetentionTest, OldEntriesGoOneAtATime) {
  auto memory = storage::MemoryStore::Make();
  auto available = std::make_shared<std::atomic<int>>(12);
  Started run = StartQuery(memory, available, kAvailableNow, std::make_shared<Events>(),
                           {{"spark.sql.streaming.minBatchesToRetain", "5"}});
  ASSERT_TRUE(run.query->AwaitTermination(std::nullopt, nullptr).ok());
  EXPECT_FALSE(memory->Get("/cp/offsets/5").ok());
  EXPECT_TRUE(memory->Get("/cp/offsets/6").ok());
  EXPECT_FALSE(memory->Get("/cp/commits/5").ok());
  EXPECT_TRUE(memory->Get("/cp/commits/11").ok());
}

TEST(TriggerTest, Intervals) {
  EXPECT_EQ(*ParseTriggerInterval("10 seconds"), 10000);
  EXPECT_EQ(*ParseTriggerInterval("interval 1 minute 30 seconds"), 90000);
  EXPECT_EQ(*ParseTriggerInterval("0.5 second"), 500);
  EXPECT_EQ(*ParseTriggerInterval("100 milliseconds"), 100);
  EXPECT_EQ(ParseTriggerInterval("1 month").error().condition(), "_LEGACY_ERROR_TEMP_3262");
  EXPECT_EQ(ParseTriggerInterval("soon").error().condition(), "INVALID_INTERVAL_FORMAT.UNRECOGNIZED_NUMBER");
  EXPECT_EQ(ParseTriggerInterval("-1 second").error().condition(), "");
  EXPECT_EQ(*ParseOutputMode("Append"), "append");
  EXPECT_EQ(ParseOutputMode("foo").error().condition(), "STREAMING_OUTPUT_MODE.INVALID");
}

}  // namespace
}  // namespace fleuve::stream
