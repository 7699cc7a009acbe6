#include "columnar/ipc.h"
#include "connectors/user/source_task_internal.h"
#include "connectors/user/user_write_internal.h"
#include "engine/engine.h"
#include "plan/analyzer.h"

namespace fleuve::connectors::user {

namespace {

std::string TextOf(const Error& error, std::string_view name) {
  for (const auto& [key, value] : error.parameters()) {
    if (key == name) {
      return value;
    }
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<RunningWrite>> RunningWrite::Start(const SourceClass& source, const WriteTarget& target,
                                                          CancellationTokenPtr token) {
  std::unique_ptr<RunningWrite> write(new RunningWrite(target));
  FLEUVE_ASSIGN(write->worker_, source.workers->Borrow(source.setup));
  python::Task task;
  task.kind = "data_source_write";
  task.header.Set("python_version", source.python_version)
      .Set("provider", source.name)
      .Set("options", OptionsJson(target.options))
      .Set("schema", target.schema.ToJson())
      .Set("overwrite", target.overwrite)
      .Set("streaming", target.batch_id.has_value());
  if (target.batch_id) {
    task.header.Set("batch", target.batch_id->value);
  }
  task.blobs = {source.command};
  task.limits = source.limits;
  FLEUVE_TRY(write->worker_->Begin(task, std::move(token)));
  auto ready = write->worker_->Next();
  if (!ready.ok()) {
    return SourceError(std::move(ready).error(), "initialize", "writer");
  }
  if (ready->kind != python::EventKind::kMessage) {
    return Error::Internal("the writer of a data source answered with something else");
  }
  FLEUVE_TRY(write->worker_->Reply(Json(Json::Object{})));
  return write;
}

RunningWrite::~RunningWrite() {
  // Written and neither committed nor aborted: the run ends here.
  if (worker_ && written_ && !worker_->is_free()) {
    Decide(false).ok();
  }
}

Result<void> RunningWrite::Take(Result<std::unique_ptr<columnar::BatchReader>> rows) {
  columnar::ArrowOptions arrow;
  arrow.time_zone = target_.zone;
  std::optional<Error> failure;
  if (!rows.ok()) {
    failure = std::move(rows).error();
  }
  while (true) {
    auto event = worker_->Next();
    if (!event.ok()) {
      return Raised(std::move(event).error());
    }
    if (event->kind == python::EventKind::kDone) {
      return failure ? std::move(*failure) : Error::Internal("the writer of a data source ended early");
    }
    if (event->kind != python::EventKind::kMessage) {
      return Error::Internal("the writer of a data source answered with something else");
    }
    if (event->message.Find("written") != nullptr) {
      if (failure) {
        // The user's code did not mind that its rows ended in an error: they do not count all the same.
        Decide(false).ok();
        return std::move(*failure);
      }
      written_ = true;
      return {};
    }
    auto next = failure ? Result<std::optional<columnar::RecordBatch>>(*failure) : (*rows)->Next();
    if (!next.ok()) {
      failure = std::move(next).error();
      FLEUVE_TRY(worker_->Reply(Json(Json::Object{{"failed", Json(true)}})));
    } else if (!*next) {
      FLEUVE_TRY(worker_->Reply(Json(Json::Object{{"end", Json(true)}})));
    } else {
      rows_ += (**next).row_count();
      FLEUVE_ASSIGN(const std::string bytes, columnar::EncodeIpcStream(target_.schema, {**next}, arrow));
      FLEUVE_TRY(worker_->Reply(Json(Json::Object{{"rows", Json(true)}}), bytes));
    }
  }
}

Result<void> RunningWrite::Decide(bool commit) {
  written_ = false;
  FLEUVE_TRY(worker_->Reply(Json(Json::Object{{"commit", Json(commit)}})));
  auto done = worker_->Next();
  if (!done.ok()) {
    Error error = Raised(std::move(done).error());
    return target_.batch_id ? StreamError(std::move(error), "commit")
                            : SourceError(std::move(error), "commit or abort", "data source write");
  }
  return {};
}

Error RunningWrite::Raised(Error error) const {
  if (TextOf(error, "class").ends_with("data_source_write.AbortFailed")) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2070", "Writing job failed.")
        .CausedBy(std::move(error));
  }
  return error;
}

Result<void> WriteRows(engine::Engine& engine, const SourceClass& source, const plan::PlanPtr& plan,
                       const plan::Options& options, bool overwrite, const plan::AnalysisConfig& config,
                       const CancellationTokenPtr& token) {
  WriteTarget target;
  target.schema = plan::SchemaOf(*plan);
  target.options = options;
  target.overwrite = overwrite;
  target.zone = config.session_zone;
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(plan, config));
  FLEUVE_ASSIGN(const auto write, RunningWrite::Start(source, target, token));
  engine::ExecuteOptions execute;
  execute.token = token;
  execute.batch_rows = MostRows(config);
  FLEUVE_TRY(write->Take(engine.Execute(prepared, execute)));
  return write->Decide(true);
}

}  // namespace fleuve::connectors::user
