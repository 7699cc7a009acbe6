#include "connectors/memory/memory.h"

#include <mutex>

#include "connectors/run_batch.h"
#include "engine/engine.h"

namespace fleuve::connectors::memory {

namespace {

/// The rows so far. Threads: any.
class MemoryTable final : public plan::TableSource {
 public:
  MemoryTable(types::Schema schema, std::string name) : schema_(std::move(schema)), name_(std::move(name)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return name_; }
  std::string provider() const override { return "memory"; }
  bool has_file_metadata() const override { return false; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>&,
                                                         const std::vector<plan::Attribute>&) const override {
    return std::shared_ptr<const plan::FileScan>();
  }
  Result<std::shared_ptr<const plan::RowScan>> PlanRows() const override {
    auto rows = std::make_shared<plan::RowScan>();
    std::lock_guard lock(mutex_);
    rows->batches = batches_;
    return std::shared_ptr<const plan::RowScan>(std::move(rows));
  }

  void Add(std::int64_t batch, std::vector<columnar::RecordBatch> rows, bool replace) {
    std::lock_guard lock(mutex_);
    if (batch <= newest_batch_) {
      return;
    }
    newest_batch_ = batch;
    if (replace) {
      batches_.clear();
    }
    for (auto& one : rows) {
      batches_.push_back(std::move(one));
    }
  }

 private:
  const types::Schema schema_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::vector<columnar::RecordBatch> batches_;
  std::int64_t newest_batch_ = -1;
};

class MemoryBatch final : public StagedBatch {
 public:
  MemoryBatch(std::shared_ptr<MemoryTable> table, std::int64_t batch, std::vector<columnar::RecordBatch> rows,
              bool replace)
      : table_(std::move(table)), batch_(batch), rows_(std::move(rows)), replace_(replace) {
    for (const auto& one : rows_) {
      count_ += one.row_count();
    }
  }
  Result<CommitOutcome> Commit() override {
    table_->Add(batch_, std::move(rows_), replace_);
    return CommitOutcome::kCommitted;
  }
  std::int64_t num_output_rows() const override { return count_; }

 private:
  std::shared_ptr<MemoryTable> table_;
  const std::int64_t batch_;
  std::vector<columnar::RecordBatch> rows_;
  const bool replace_;
  std::int64_t count_ = 0;
};

class MemorySink final : public Sink {
 public:
  MemorySink(std::shared_ptr<MemoryTable> table, bool replace) : table_(std::move(table)), replace_(replace) {}
  std::string description() const override { return "MemorySink"; }
  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    FLEUVE_ASSIGN(auto reader, RunBatch(batch, batch.plan));
    FLEUVE_ASSIGN(auto rows, engine::ReadAll(*reader));
    return std::unique_ptr<StagedBatch>(
        std::make_unique<MemoryBatch>(table_, batch.batch_id.value, std::move(rows), replace_));
  }

 private:
  std::shared_ptr<MemoryTable> table_;
  const bool replace_;
};

class MemoryProvider final : public SinkProvider {
 public:
  bool uses_temporary_checkpoint() const override { return true; }
  Result<void> CheckSpec(const SinkSpec& spec, const SinkContext& context) override {
    if (!spec.partition_by.empty()) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1197", "'memory' does not support partitioning.")
          .Family(ErrorFamily::kAnalysis);
    }
    if (!context.query_name) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1194",
                   "queryName must be specified for memory sink.")
          .Family(ErrorFamily::kAnalysis);
    }
    return {};
  }
  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& spec, const SinkContext& context) override {
    auto table = std::make_shared<MemoryTable>(context.schema, *context.query_name);
    if (!context.hooks.publish_view) {
      return Error::Unsupported("the memory sink outside a session");
    }
    FLEUVE_TRY(context.hooks.publish_view(*context.query_name, table));
    return std::unique_ptr<Sink>(std::make_unique<MemorySink>(std::move(table), spec.output_mode == "complete"));
  }
};

}  // namespace

void RegisterMemory(ConnectorRegistry& registry) { registry.AddSink("memory", std::make_shared<MemoryProvider>()); }

}  // namespace fleuve::connectors::memory
