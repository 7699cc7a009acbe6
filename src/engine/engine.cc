#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "duckdb/main/valid_checker.hpp"
#include "engine/arrow_rows_internal.h"
#include "engine/carriers_internal.h"
#include "engine/instance_internal.h"
#include "engine/raise_internal.h"
#include "engine/write_files_internal.h"

namespace fleuve::engine {
namespace {

/// A batch is given when it is this old, even if it is small.
constexpr auto kBatchPatience = std::chrono::milliseconds(100);

/// The engine's instance; a new one takes its place when it has died.
class InstanceHolder {
 public:
  InstanceHolder(const EngineOptions& options, std::shared_ptr<Instance> instance)
      : options_(options), instance_(std::move(instance)) {}

  /// Raises.
  std::shared_ptr<Instance> Current() {
    std::lock_guard lock(mutex_);
    if (instance_->Invalidated()) {
      instance_ = std::make_shared<Instance>(options_);
    }
    return instance_;
  }

  /// Starts a plan. Another operation may have killed the instance: once more on a new one.
  Result<std::unique_ptr<Run>> Start(const plan::PlanPtr& prepared, const ExecuteOptions& options,
                                     std::int64_t buffer_bytes) {
    for (int attempt = 0;; attempt++) {
      std::shared_ptr<Instance> instance;
      auto run = Guard([&]() -> Result<std::unique_ptr<Run>> {
        instance = Current();
        return std::make_unique<Run>(instance, prepared, options, buffer_bytes);
      });
      if (run.ok() || attempt > 0 || instance == nullptr || !instance->Invalidated()) {
        return run;
      }
    }
  }

  /// Changes one setting now and for instances to come. Raises.
  void Set(const std::string& name, duckdb::Value value, const std::function<void(EngineOptions&)>& remember) {
    std::lock_guard lock(mutex_);
    remember(options_);
    if (!instance_->Invalidated()) {
      instance_->Set(name, std::move(value));
      if (options_.threads > 0) {
        instance_->set_threads(options_.threads);
      }
    }
  }

 private:
  std::mutex mutex_;
  EngineOptions options_;
  std::shared_ptr<Instance> instance_;
};

class RunReader final : public columnar::BatchReader {
 public:
  /// \param restart  runs the plan anew, for an instance that died before a row was given
  RunReader(std::unique_ptr<Run> run, const ExecuteOptions& options,
            std::function<Result<std::unique_ptr<Run>>()> restart)
      : run_(std::move(run)), options_(options), restart_(std::move(restart)) {
    std::vector<types::StructField> fields;
    for (const auto& column : run_->columns()) {
      fields.push_back({column.name, column.type, column.nullable, column.metadata});
    }
    schema_ = std::make_shared<const types::Schema>(types::DataType::Struct(std::move(fields)));
    builder_ = std::make_unique<ArrowBatchBuilder>(schema_);
  }

  const types::Schema& schema() const override { return *schema_; }

  Result<std::optional<columnar::RecordBatch>> Next() override {
    if (error_.has_value()) {
      return *error_;
    }
    auto batch = Guard([this]() -> Result<std::optional<columnar::RecordBatch>> { return Fill(); });
    if (!batch.ok() && restart_ != nullptr && run_ != nullptr && run_->instance().Invalidated()) {
      run_.reset();
      pending_.reset();
      builder_ = std::make_unique<ArrowBatchBuilder>(schema_);
      auto again = std::exchange(restart_, nullptr)();
      if (again.ok()) {
        run_ = *std::move(again);
        batch = Guard([this]() -> Result<std::optional<columnar::RecordBatch>> { return Fill(); });
      }
    }
    restart_ = nullptr;
    if (!batch.ok()) {
      error_ = batch.error();
      run_.reset();
    }
    return batch;
  }

 private:
  std::optional<columnar::RecordBatch> Fill() {
    if (run_ == nullptr) {
      return std::nullopt;
    }
    const auto began = std::chrono::steady_clock::now();
    while (true) {
      if (pending_ == nullptr) {
        pending_ = run_->Next();
      }
      if (pending_ == nullptr) {
        run_.reset();
        break;
      }
      if (builder_->rows() > 0 &&
          builder_->rows() + static_cast<std::int64_t>(pending_->size()) > options_.batch_rows) {
        break;
      }
      if (static_cast<std::int64_t>(pending_->size()) > options_.batch_rows) {
        // A chunk larger than a batch may be is given in parts.
        const auto part = static_cast<duckdb::idx_t>(options_.batch_rows);
        duckdb::DataChunk head;
        head.InitializeEmpty(pending_->GetTypes());
        head.Reference(*pending_);
        head.Flatten();
        head.SetCardinality(part);
        builder_->Append(head);
        duckdb::SelectionVector rest(pending_->size() - part);
        for (duckdb::idx_t i = part; i < pending_->size(); i++) {
          rest.set_index(i - part, i);
        }
        pending_->Slice(rest, pending_->size() - part);
        break;
      }
      builder_->Append(*pending_);
      pending_.reset();
      if (builder_->rows() >= options_.batch_rows || builder_->bytes() >= options_.batch_bytes ||
          std::chrono::steady_clock::now() - began > kBatchPatience) {
        break;
      }
    }
    if (builder_->rows() == 0) {
      return std::nullopt;
    }
    return builder_->Finish();
  }

  std::unique_ptr<Run> run_;
  ExecuteOptions options_;
  std::function<Result<std::unique_ptr<Run>>()> restart_;
  std::shared_ptr<const types::Schema> schema_;
  std::unique_ptr<ArrowBatchBuilder> builder_;
  duckdb::unique_ptr<duckdb::DataChunk> pending_;
  std::optional<Error> error_;
};

class DuckEngine final : public Engine {
 public:
  explicit DuckEngine(std::shared_ptr<InstanceHolder> holder) : holder_(std::move(holder)) {}

  Result<std::unique_ptr<columnar::BatchReader>> Execute(const plan::PlanPtr& prepared,
                                                         const ExecuteOptions& options) override {
    FLEUVE_ASSIGN(auto run, holder_->Start(prepared, options, 0));
    // What was observed of a run that died must not be counted twice.
    std::function<Result<std::unique_ptr<Run>>()> restart;
    if (options.observer == nullptr) {
      restart = [holder = holder_, prepared, options] { return holder->Start(prepared, options, 0); };
    }
    return std::unique_ptr<columnar::BatchReader>(
        std::make_unique<RunReader>(std::move(run), options, std::move(restart)));
  }

  Result<WriteResult> WriteFiles(const plan::PlanPtr& prepared, const WriteSpec& spec,
                                 const ExecuteOptions& options) override {
    FLEUVE_ASSIGN(auto run, holder_->Start(prepared, options, WriteBufferBytes(*prepared)));
    return Guard([&]() -> Result<WriteResult> { return WriteRun(*run, spec); });
  }

  Result<void> SetThreads(int threads) override {
    return Guard([&]() -> Result<void> {
      const int count = threads > 0 ? threads : 1;
      holder_->Set("threads", duckdb::Value::BIGINT(count),
                   [count](EngineOptions& options) { options.threads = count; });
      return {};
    });
  }

  Result<void> SetMemory(std::int64_t bytes) override {
    return Guard([&]() -> Result<void> {
      holder_->Set("memory_limit", duckdb::Value(std::to_string(bytes) + "B"),
                   [bytes](EngineOptions& options) { options.memory_bytes = bytes; });
      return {};
    });
  }

 private:
  /// Rows that may wait for the writer, so that the plan goes on while a row group is encoded. Of text and binary
  /// values DuckDB counts 16 bytes each, whatever their length: of rows that have them fewer may wait.
  static std::int64_t WriteBufferBytes(const plan::LogicalPlan& plan) {
    const bool any_length = std::any_of(plan.output.begin(), plan.output.end(), [](const plan::Attribute& column) {
      return column.type.IsString() || column.type.IsNested() || column.type.Is(types::TypeKind::kBinary) ||
             column.type.Is(types::TypeKind::kVariant);
    });
    return any_length ? 8 << 20 : 32 << 20;
  }

  std::shared_ptr<InstanceHolder> holder_;
};

}  // namespace

std::int64_t RunObserver::LeafRows(const plan::LogicalPlan* leaf) const {
  std::lock_guard lock(mutex_);
  const auto found = leaf_rows_.find(leaf);
  return found == leaf_rows_.end() ? 0 : found->second;
}

std::vector<ObservedMetrics> RunObserver::metrics() const {
  std::lock_guard lock(mutex_);
  return metrics_;
}

void RunObserver::AddLeafRows(const plan::LogicalPlan* leaf, std::int64_t rows) {
  std::lock_guard lock(mutex_);
  leaf_rows_[leaf] += rows;
}

void RunObserver::AddMetrics(ObservedMetrics metrics) {
  std::lock_guard lock(mutex_);
  metrics_.push_back(std::move(metrics));
}

Result<std::unique_ptr<Engine>> Engine::Open(const EngineOptions& options) {
  return Guard([&]() -> Result<std::unique_ptr<Engine>> {
    return std::unique_ptr<Engine>(
        std::make_unique<DuckEngine>(std::make_shared<InstanceHolder>(options, std::make_shared<Instance>(options))));
  });
}

Result<std::vector<columnar::RecordBatch>> ReadAll(columnar::BatchReader& reader) {
  std::vector<columnar::RecordBatch> batches;
  while (true) {
    FLEUVE_ASSIGN(auto batch, reader.Next());
    if (!batch.has_value()) {
      return batches;
    }
    batches.push_back(*std::move(batch));
  }
}

}  // namespace fleuve::engine
