#include "engine/engine.h"

#include <chrono>

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

class RunReader final : public columnar::BatchReader {
 public:
  RunReader(std::unique_ptr<Run> run, const ExecuteOptions& options) : run_(std::move(run)), options_(options) {
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
  std::shared_ptr<const types::Schema> schema_;
  std::unique_ptr<ArrowBatchBuilder> builder_;
  duckdb::unique_ptr<duckdb::DataChunk> pending_;
  std::optional<Error> error_;
};

class DuckEngine final : public Engine {
 public:
  DuckEngine(const EngineOptions& options, std::shared_ptr<Instance> instance)
      : options_(options), instance_(std::move(instance)) {}

  Result<std::unique_ptr<columnar::BatchReader>> Execute(const plan::PlanPtr& prepared,
                                                         const ExecuteOptions& options) override {
    FLEUVE_ASSIGN(auto run, Start(prepared, options));
    return std::unique_ptr<columnar::BatchReader>(std::make_unique<RunReader>(std::move(run), options));
  }

  Result<WriteResult> WriteFiles(const plan::PlanPtr& prepared, const WriteSpec& spec,
                                 const ExecuteOptions& options) override {
    FLEUVE_ASSIGN(auto run, Start(prepared, options));
    return Guard([&]() -> Result<WriteResult> { return WriteRun(*run, spec); });
  }

  Result<void> SetThreads(int threads) override {
    std::lock_guard lock(mutex_);
    return Guard([&]() -> Result<void> {
      const int count = threads > 0 ? threads : 1;
      instance_->Set("threads", duckdb::Value::BIGINT(count));
      instance_->set_threads(count);
      options_.threads = count;
      return {};
    });
  }

  Result<void> SetMemory(std::int64_t bytes) override {
    std::lock_guard lock(mutex_);
    return Guard([&]() -> Result<void> {
      instance_->Set("memory_limit", duckdb::Value(std::to_string(bytes) + "B"));
      options_.memory_bytes = bytes;
      return {};
    });
  }

 private:
  /// The instance, a new one where the old one has died.
  std::shared_ptr<Instance> Current() {
    std::lock_guard lock(mutex_);
    if (instance_->Invalidated()) {
      instance_ = std::make_shared<Instance>(options_);
    }
    return instance_;
  }

  Result<std::unique_ptr<Run>> Start(const plan::PlanPtr& prepared, const ExecuteOptions& options) {
    for (int attempt = 0;; attempt++) {
      std::shared_ptr<Instance> instance;
      auto run = Guard([&]() -> Result<std::unique_ptr<Run>> {
        instance = Current();
        return std::make_unique<Run>(instance, prepared, options);
      });
      // Another operation may have killed the instance: once more on a new one.
      if (run.ok() || attempt > 0 || instance == nullptr || !instance->Invalidated()) {
        return run;
      }
    }
  }

  std::mutex mutex_;
  EngineOptions options_;
  std::shared_ptr<Instance> instance_;
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
    return std::unique_ptr<Engine>(std::make_unique<DuckEngine>(options, std::make_shared<Instance>(options)));
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
