// A streaming operator inside a DuckDB plan whose work is done elsewhere: batches of rows go out as Arrow, a worker
// thread answers with Arrow batches, rows come back in order. This is the shape that external (Python) functions take.
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <thread>

// clang-format off: this header stands first, as it has the Arrow interface that the rooms share
#include "engine/duckdb_pch.h"
// clang-format on

#include "columnar/ipc.h"
#include "engine/arrow_rows_internal.h"
#include "engine/carriers_internal.h"
#include "engine/files/file_functions_internal.h"
#include "engine/instance_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {
namespace {

using duckdb::idx_t;
using types::DataType;

constexpr std::int64_t kBatchRows = 3000;
/// Batches on their way to the worker and back at any time.
constexpr std::size_t kMostInFlight = 4;

/// Squares the only column of each batch, on its own thread; in order.
class Worker {
 public:
  Worker() : thread_([this] { Loop(); }) {}
  ~Worker() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void Send(columnar::RecordBatch batch) {
    std::lock_guard lock(mutex_);
    todo_.push_back(std::move(batch));
    most_in_flight = std::max(most_in_flight, todo_.size() + done_.size());
    changed_.notify_all();
  }
  std::size_t in_flight() {
    std::lock_guard lock(mutex_);
    return todo_.size() + done_.size() + (busy_ ? 1 : 0);
  }
  /// Waits for the next answer; false when `token` was cancelled first.
  bool Receive(CancellationToken* token, columnar::RecordBatch* batch) {
    const auto key = token == nullptr ? -1 : token->AddCallback([this] { changed_.notify_all(); });
    std::unique_lock lock(mutex_);
    // The callback does not hold the mutex: look again every now and then.
    while (done_.empty() && (token == nullptr || !token->cancelled())) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    const bool answered = !done_.empty();
    if (answered) {
      *batch = std::move(done_.front());
      done_.pop_front();
    }
    lock.unlock();
    if (token != nullptr) {
      token->RemoveCallback(key);
    }
    return answered;
  }

  std::atomic<bool> hang{false};
  std::size_t most_in_flight = 0;
  int batches = 0;

 private:
  void Loop() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || (!todo_.empty() && !hang); });
      if (stop_) {
        return;
      }
      auto batch = std::move(todo_.front());
      todo_.pop_front();
      busy_ = true;
      lock.unlock();
      auto rows = columnar::RowsFromBatch(batch);
      for (auto& row : *rows) {
        row[0] = types::Value(row[0].integer() * row[0].integer());
      }
      auto answer = columnar::BatchFromRows(*batch.schema, *rows);
      lock.lock();
      busy_ = false;
      batches++;
      done_.push_back(*std::move(answer));
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<columnar::RecordBatch> todo_;
  std::deque<columnar::RecordBatch> done_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;
};

Worker* g_worker = nullptr;

struct OperatorState final : duckdb::GlobalTableFunctionState {
  OperatorState()
      : schema(std::make_shared<const types::Schema>(DataType::Struct({{"x", DataType::Long(), true, Json()}}))),
        builder(schema) {}
  idx_t MaxThreads() const override { return 1; }
  std::shared_ptr<const types::Schema> schema;
  ArrowBatchBuilder builder;
  /// The answer that is being given, and how far.
  columnar::RecordBatch answer;
  std::int64_t at = 0;
  bool input_taken = false;
};

duckdb::unique_ptr<duckdb::FunctionData> Bind(duckdb::ClientContext&, duckdb::TableFunctionBindInput& input,
                                              duckdb::vector<duckdb::LogicalType>& types,
                                              duckdb::vector<duckdb::string>& names) {
  types = input.input_table_types;
  names = {"c0"};
  return duckdb::make_uniq<duckdb::TableFunctionData>();
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> Init(duckdb::ClientContext&, duckdb::TableFunctionInitInput&) {
  return duckdb::make_uniq<OperatorState>();
}

/// Gives rows of the current answer; false when there is none left.
bool Give(OperatorState& state, duckdb::DataChunk& out) {
  const std::int64_t left = state.answer.row_count() - state.at;
  if (left <= 0) {
    return false;
  }
  const auto count = static_cast<idx_t>(std::min<std::int64_t>(STANDARD_VECTOR_SIZE, left));
  ArrowToVector(*state.answer.array->get()->children[0], DataType::Long(), static_cast<idx_t>(state.at), count,
                out.data[0]);
  out.SetCardinality(count);
  state.at += static_cast<std::int64_t>(count);
  return true;
}

void Next(OperatorState& state, duckdb::ClientContext& context) {
  auto* token = RunState::Of(context).token.get();
  if (!g_worker->Receive(token, &state.answer)) {
    RaiseError(Error::Cancelled());
  }
  state.at = 0;
}

duckdb::OperatorResultType Process(duckdb::ExecutionContext& context, duckdb::TableFunctionInput& input,
                                   duckdb::DataChunk& in, duckdb::DataChunk& out) {
  auto& state = input.global_state->Cast<OperatorState>();
  if (Give(state, out)) {
    return duckdb::OperatorResultType::HAVE_MORE_OUTPUT;
  }
  if (!state.input_taken) {
    state.builder.Append(in);
    state.input_taken = true;
    if (state.builder.rows() >= kBatchRows) {
      g_worker->Send(state.builder.Finish());
    }
  }
  if (g_worker->in_flight() >= kMostInFlight) {
    Next(state, context.client);
    Give(state, out);
    return duckdb::OperatorResultType::HAVE_MORE_OUTPUT;
  }
  state.input_taken = false;
  return duckdb::OperatorResultType::NEED_MORE_INPUT;
}

duckdb::OperatorFinalizeResultType Finish(duckdb::ExecutionContext& context, duckdb::TableFunctionInput& input,
                                          duckdb::DataChunk& out) {
  auto& state = input.global_state->Cast<OperatorState>();
  if (state.builder.rows() > 0) {
    g_worker->Send(state.builder.Finish());
  }
  if (Give(state, out)) {
    return duckdb::OperatorFinalizeResultType::HAVE_MORE_OUTPUT;
  }
  if (g_worker->in_flight() == 0) {
    return duckdb::OperatorFinalizeResultType::FINISHED;
  }
  Next(state, context.client);
  Give(state, out);
  return duckdb::OperatorFinalizeResultType::HAVE_MORE_OUTPUT;
}

class InOutOperatorTest : public testing::Test {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.threads = 2;
    options.memory_bytes = 256 << 20;
    instance_ = std::make_unique<Instance>(options);
    duckdb::TableFunction function("squares", {duckdb::LogicalType::TABLE}, nullptr, Bind, Init);
    function.in_out_function = Process;
    function.in_out_function_final = Finish;
    duckdb::Connection connection(instance_->db());
    connection.BeginTransaction();
    InstallTableFunction(instance_->db(), std::move(function));
    connection.Commit();
    g_worker = &worker_;
    state_ = duckdb::make_shared_ptr<RunState>();
    state_->token = std::make_shared<CancellationToken>();
    connection_ = std::make_unique<duckdb::Connection>(instance_->db());
    connection_->context->registered_state->Insert(RunState::kName, state_);
  }

  duckdb::unique_ptr<duckdb::QueryResult> Squares(std::int64_t rows) {
    auto result = connection_->SendQuery("SELECT c0 + 1 FROM squares((SELECT range FROM range(" + std::to_string(rows) +
                                         "))) WHERE c0 >= 0");
    return result;
  }

  Worker worker_;
  std::unique_ptr<Instance> instance_;
  duckdb::shared_ptr<RunState> state_;
  std::unique_ptr<duckdb::Connection> connection_;
};

TEST_F(InOutOperatorTest, RowsComeBackInOrderAndMemoryIsBounded) {
  auto result = Squares(500000);
  ASSERT_FALSE(result->HasError()) << result->GetError();
  std::int64_t next = 0;
  while (auto chunk = result->Fetch()) {
    if (chunk->size() == 0) {
      break;
    }
    for (idx_t i = 0; i < chunk->size(); i++) {
      ASSERT_EQ(chunk->GetValue(0, i).GetValue<std::int64_t>(), next * next + 1);
      next++;
    }
  }
  ASSERT_FALSE(result->HasError()) << result->GetError();
  EXPECT_EQ(next, 500000);
  EXPECT_LE(worker_.most_in_flight, kMostInFlight + 1);
  EXPECT_GE(worker_.batches, 100);
}

TEST_F(InOutOperatorTest, AWorkerThatHangsDoesNotHoldACancelledQuery) {
  worker_.hang = true;
  auto canceller = std::thread([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    state_->token->Cancel();
    connection_->Interrupt();
  });
  const auto began = std::chrono::steady_clock::now();
  auto result = Squares(100000);
  while (!result->HasError()) {
    auto chunk = result->Fetch();
    if (chunk == nullptr || chunk->size() == 0) {
      break;
    }
  }
  canceller.join();
  EXPECT_TRUE(result->HasError());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(800));
}

}  // namespace
}  // namespace fleuve::engine
