#include "base/failpoint.h"
#include "connectors/user/user_source.h"
#include "connectors/user/user_write_internal.h"
#include "engine/engine.h"
#include "plan/analyzer.h"

namespace fleuve::connectors::user {

namespace {

class WrittenRows final : public StagedBatch {
 public:
  explicit WrittenRows(std::unique_ptr<RunningWrite> write) : write_(std::move(write)) {}
  Result<CommitOutcome> Commit() override {
    FLEUVE_TRY(write_->Decide(true));
    return CommitOutcome::kCommitted;
  }
  std::int64_t num_output_rows() const override { return write_->rows(); }

 private:
  const std::unique_ptr<RunningWrite> write_;
};

class UserSink final : public Sink {
 public:
  UserSink(SourceClass source, SinkSpec spec) : source_(std::move(source)), spec_(std::move(spec)) {}
  std::string description() const override { return "PythonTable[" + source_.name + "]"; }
  bool run_is_effect() const override { return true; }
  bool runs_user_code() const override { return true; }

  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    if (spec_.output_mode == "update") {
      return Error(ErrorKind::kInvalidArgument, "",
                   "requirement failed: " + source_.name + " does not support Update mode.")
          .Family(ErrorFamily::kIllegalArgument);
    }
    WriteTarget target;
    target.schema = plan::SchemaOf(*batch.plan);
    target.options = spec_.options;
    target.overwrite = spec_.output_mode == "complete";
    target.batch_id = batch.batch_id;
    target.zone = batch.config.session_zone;
    FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(batch.plan, batch.config));
    if (batch.on_prepared) {
      batch.on_prepared(prepared);
    }
    FLEUVE_ASSIGN(auto write, RunningWrite::Start(source_, target, batch.token));
    FLEUVE_ASSIGN(const EngineLoan loan, batch.borrow_engine(batch.token));
    engine::ExecuteOptions options;
    options.token = batch.token;
    options.observer = batch.observer;
    FLEUVE_TRY(write->Take(loan.engine->Execute(prepared, options)));
    FLEUVE_TRY(Failpoint("user_sink.written"));
    return std::unique_ptr<StagedBatch>(std::make_unique<WrittenRows>(std::move(write)));
  }

 private:
  const SourceClass source_;
  const SinkSpec spec_;
};

class UserSinkProvider final : public SinkProvider {
 public:
  explicit UserSinkProvider(SourceClass source) : source_(std::move(source)) {}
  Result<void> CheckSpec(const SinkSpec& spec, const SinkContext& /*context*/) override {
    if (!spec.partition_by.empty() || !spec.cluster_by.empty()) {
      return Error(ErrorKind::kInvalidArgument, "",
                   "requirement failed: The provided partitioning or clustering columns do not match the existing "
                   "table's.")
          .Family(ErrorFamily::kIllegalArgument);
    }
    return {};
  }
  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& spec, const SinkContext& /*context*/) override {
    SinkSpec own = spec;
    if (!own.path.empty()) {
      own.options = WithPaths(std::move(own.options), {own.path});
    }
    return std::unique_ptr<Sink>(std::make_unique<UserSink>(source_, std::move(own)));
  }

 private:
  const SourceClass source_;
};

}  // namespace

std::shared_ptr<SinkProvider> MakeSinkProvider(SourceClass source) {
  return std::make_shared<UserSinkProvider>(std::move(source));
}

}  // namespace fleuve::connectors::user
