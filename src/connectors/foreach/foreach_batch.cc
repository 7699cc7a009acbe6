#include "base/failpoint.h"
#include "base/ids.h"
#include "connectors/foreach/batch_frame_internal.h"
#include "connectors/foreach/foreach.h"
#include "connectors/token_link.h"

namespace fleuve::connectors::foreach {

namespace {

/// How long the interpreter may take to start and to read the function.
constexpr std::int64_t kStartMs = 5 * 60 * 1000;
/// How long it may take to leave the session.
constexpr std::int64_t kStopMs = 5000;

/// The worker of one run: it holds the function and waits for batches. Threads: one at a time.
class FunctionRunner {
 public:
  FunctionRunner(UserFunction function, BatchFunctionHost host)
      : function_(std::move(function)), host_(std::move(host)) {}
  ~FunctionRunner() { End(); }

  Result<void> Start(const CancellationTokenPtr& token) {
    const TokenLink link(token, token_);
    auto started = Begin();
    if (!started.ok() && started.error().kind() != ErrorKind::kCancelled &&
        started.error().condition() != "FLEUVE_NO_PYTHON") {
      return Error(ErrorKind::kInvalidArgument, "STREAMING_PYTHON_RUNNER_INITIALIZATION_FAILURE",
                   "Streaming Runner initialization failed, returned -2. Cause: " + started.error().ToString())
          .With("resFromPython", "-2")
          .With("msg", started.error().ToString());
    }
    return started;
  }

  /// Runs the function on one batch and waits for its end.
  Result<void> RunBatch(const std::string& frame, BatchId batch, const CancellationTokenPtr& token) {
    const TokenLink link(token, token_);
    FLEUVE_TRY(token_->Check());
    worker_->RestartClock(function_.limits.task_ms);
    FLEUVE_TRY(worker_->Reply(Json(Json::Object{{"frame", Json(frame)}, {"batch", Json(batch.value)}})));
    return WaitUntilReady();
  }

  /// Ends everything that the run has going, then gives the worker back where it is well.
  void End() {
    if (ended_) {
      return;
    }
    ended_ = true;
    if (worker_ && !worker_->is_free() && waiting_ && !token_->cancelled()) {
      worker_->RestartClock(kStopMs);  // that of the last batch may have run out meanwhile
      if (worker_->Reply(Json(Json::Object{{"stop", Json(true)}})).ok()) {
        worker_->Next().ok();
      }
    }
    worker_.GiveBack();
    if (host_.end_run) {
      host_.end_run();
    }
  }

  const UserFunction& function() const { return function_; }
  const BatchFunctionHost& host() const { return host_; }

 private:
  Result<void> Begin() {
    FLEUVE_ASSIGN(worker_, function_.workers->Borrow(function_.setup));
    python::Task task;
    task.kind = "foreach_batch";
    task.header.Set("python_version", function_.python_version).Set("url", host_.url);
    task.blobs = {function_.command};
    task.limits = function_.limits;
    task.limits.task_ms = kStartMs;  // the limit of a task is one of each batch
    FLEUVE_TRY(worker_->Begin(task, token_));
    return WaitUntilReady();
  }

  Result<void> WaitUntilReady() {
    waiting_ = false;
    FLEUVE_ASSIGN(const python::Event event, worker_->Next());
    if (event.kind != python::EventKind::kMessage) {
      return Error::Internal("the worker of a foreachBatch function answered with something else");
    }
    waiting_ = true;
    return {};
  }

  const UserFunction function_;
  const BatchFunctionHost host_;
  const CancellationTokenPtr token_ = std::make_shared<CancellationToken>();
  python::BorrowedWorker worker_;
  /// The worker has asked for the next batch.
  bool waiting_ = false;
  bool ended_ = false;
};

class HandedOver final : public StagedBatch {
 public:
  Result<CommitOutcome> Commit() override { return CommitOutcome::kCommitted; }
};

class ForeachBatchSink final : public Sink {
 public:
  explicit ForeachBatchSink(std::shared_ptr<FunctionRunner> runner) : runner_(std::move(runner)) {}
  std::string description() const override { return "ForeachBatchSink"; }
  bool run_is_effect() const override { return true; }
  bool runs_user_code() const override { return true; }

  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    const std::string id = NewUuid();
    const auto frame = std::make_shared<BatchFrame>(batch, "batch " + std::to_string(batch.batch_id.value) + " " + id,
                                                    runner_->function().scratch + "/batch-" + id);
    const BatchFunctionHost& host = runner_->host();
    FLEUVE_TRY(host.publish(id, frame));
    auto ran = runner_->RunBatch(id, batch.batch_id, batch.token);
    host.withdraw(id);
    if (!ran.ok()) {
      if (ran.error().kind() == ErrorKind::kCancelled) {
        return std::move(ran).error();
      }
      const std::string reason = "[session: " + host.session_id + "] [userId: " + host.user_id +
                                 "] Found error inside foreachBatch Python process: " + ran.error().ToString();
      return Error(ErrorKind::kInvalidArgument, "FOREACH_BATCH_USER_FUNCTION_ERROR",
                   "An error occurred in the user provided function in foreach batch sink. Reason: " + reason)
          .With("reason", reason);
    }
    FLEUVE_TRY(Failpoint("foreach_batch.returned"));
    if (const plan::PlanPtr prepared = frame->Report(*batch.observer); prepared != nullptr && batch.on_prepared) {
      batch.on_prepared(prepared);
    }
    return std::unique_ptr<StagedBatch>(std::make_unique<HandedOver>());
  }

  void Stop() override { runner_->End(); }

 private:
  const std::shared_ptr<FunctionRunner> runner_;
};

class ForeachBatchProvider final : public SinkProvider {
 public:
  explicit ForeachBatchProvider(std::shared_ptr<FunctionRunner> runner) : runner_(std::move(runner)) {}
  bool uses_temporary_checkpoint() const override { return true; }
  Result<void> CheckSpec(const SinkSpec& spec, const SinkContext& /*context*/) override {
    if (!spec.partition_by.empty()) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1197",
                   "'foreachBatch' does not support partitioning.")
          .Family(ErrorFamily::kAnalysis);
    }
    return {};
  }
  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& /*spec*/, const SinkContext& /*context*/) override {
    return std::unique_ptr<Sink>(std::make_unique<ForeachBatchSink>(runner_));
  }

 private:
  const std::shared_ptr<FunctionRunner> runner_;
};

}  // namespace

Result<std::shared_ptr<SinkProvider>> MakeForeachBatch(UserFunction function, BatchFunctionHost host,
                                                       const CancellationTokenPtr& token) {
  auto runner = std::make_shared<FunctionRunner>(std::move(function), std::move(host));
  FLEUVE_TRY(runner->Start(token));
  return std::shared_ptr<SinkProvider>(std::make_shared<ForeachBatchProvider>(std::move(runner)));
}

}  // namespace fleuve::connectors::foreach
