#include "connectors/noop/noop.h"

#include "connectors/run_batch.h"

namespace fleuve::connectors::noop {

namespace {

class NoopBatch final : public StagedBatch {
 public:
  explicit NoopBatch(std::int64_t rows) : rows_(rows) {}
  Result<CommitOutcome> Commit() override { return CommitOutcome::kCommitted; }
  std::int64_t num_output_rows() const override { return rows_; }

 private:
  const std::int64_t rows_;
};

class NoopSink final : public Sink {
 public:
  std::string description() const override { return "NoopTable"; }
  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    FLEUVE_ASSIGN(auto reader, RunBatch(batch, batch.plan));
    std::int64_t rows = 0;
    for (;;) {
      FLEUVE_ASSIGN(auto next, reader->Next());
      if (!next) {
        break;
      }
      rows += next->row_count();
    }
    return std::unique_ptr<StagedBatch>(std::make_unique<NoopBatch>(rows));
  }
};

class NoopProvider final : public SinkProvider {
 public:
  bool uses_temporary_checkpoint() const override { return true; }
  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec&, const SinkContext&) override {
    return std::unique_ptr<Sink>(std::make_unique<NoopSink>());
  }
};

}  // namespace

void RegisterNoop(ConnectorRegistry& registry) { registry.AddSink("noop", std::make_shared<NoopProvider>()); }

}  // namespace fleuve::connectors::noop
