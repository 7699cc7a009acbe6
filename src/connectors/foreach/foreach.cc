#include "connectors/foreach/foreach.h"

#include "base/failpoint.h"
#include "base/ids.h"
#include "columnar/ipc.h"
#include "connectors/foreach/batch_frame_internal.h"
#include "engine/engine.h"

namespace fleuve::connectors::foreach {

namespace {

class RowsTaken final : public StagedBatch {
 public:
  explicit RowsTaken(std::int64_t rows) : rows_(rows) {}
  Result<CommitOutcome> Commit() override { return CommitOutcome::kCommitted; }
  std::int64_t num_output_rows() const override { return rows_; }

 private:
  const std::int64_t rows_;
};

class ForeachSink final : public Sink {
 public:
  explicit ForeachSink(UserFunction function) : function_(std::move(function)) {}
  std::string description() const override { return "ForeachSink"; }
  bool run_is_effect() const override { return true; }
  bool runs_user_code() const override { return true; }

  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    const std::string id = NewUuid();
    const BatchFrame frame(batch, "foreach " + id, function_.scratch + "/batch-" + id);
    FLEUVE_ASSIGN(auto reader, frame.Open());
    if (const plan::PlanPtr prepared = frame.Report(*batch.observer); prepared != nullptr && batch.on_prepared) {
      batch.on_prepared(prepared);
    }
    std::int64_t rows = 0;
    auto ran = HandOut(batch, *reader, &rows);
    if (!ran.ok()) {
      if (ran.error().kind() == ErrorKind::kCancelled) {
        return std::move(ran).error();
      }
      const std::string reason = ran.error().ToString();
      return Error(ErrorKind::kInvalidArgument, "FOREACH_USER_FUNCTION_ERROR",
                   "An error occurred in the user provided function in foreach sink. Reason: " + reason)
          .With("reason", reason);
    }
    FLEUVE_TRY(Failpoint("foreach.returned"));
    return std::unique_ptr<StagedBatch>(std::make_unique<RowsTaken>(rows));
  }

 private:
  Result<void> HandOut(const SinkBatch& batch, columnar::BatchReader& reader, std::int64_t* rows) {
    FLEUVE_ASSIGN(python::BorrowedWorker worker, function_.workers->Borrow(function_.setup));
    const types::Schema schema = plan::SchemaOf(*batch.plan);
    columnar::ArrowOptions arrow;
    arrow.time_zone = batch.config.session_zone;
    python::Task task;
    task.kind = "foreach";
    task.header.Set("python_version", function_.python_version)
        .Set("partition", 0)
        .Set("batch", batch.batch_id.value)
        .Set("schema", schema.ToJson());
    task.blobs = {function_.command};
    task.limits = function_.limits;
    FLEUVE_TRY(worker->Begin(task, batch.token));
    while (true) {
      FLEUVE_ASSIGN(const python::Event event, worker->Next());
      if (event.kind == python::EventKind::kDone) {
        return {};
      }
      if (event.kind != python::EventKind::kNeedInput) {
        return Error::Internal("the worker of a foreach function answered with something else");
      }
      FLEUVE_ASSIGN(auto next, reader.Next());
      if (!next) {
        FLEUVE_TRY(worker->GiveEnd());
        continue;
      }
      *rows += next->row_count();
      FLEUVE_ASSIGN(const std::string bytes, columnar::EncodeIpcStream(schema, {*next}, arrow));
      FLEUVE_TRY(worker->Give(bytes));
    }
  }

  const UserFunction function_;
};

class ForeachProvider final : public SinkProvider {
 public:
  explicit ForeachProvider(UserFunction function) : function_(std::move(function)) {}
  bool uses_temporary_checkpoint() const override { return true; }
  Result<void> CheckSpec(const SinkSpec& spec, const SinkContext& /*context*/) override {
    if (!spec.partition_by.empty()) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1197", "'foreach' does not support partitioning.")
          .Family(ErrorFamily::kAnalysis);
    }
    return {};
  }
  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& /*spec*/, const SinkContext& /*context*/) override {
    return std::unique_ptr<Sink>(std::make_unique<ForeachSink>(function_));
  }

 private:
  const UserFunction function_;
};

}  // namespace

std::shared_ptr<SinkProvider> MakeForeach(UserFunction function) {
  return std::make_shared<ForeachProvider>(std::move(function));
}

}  // namespace fleuve::connectors::foreach
