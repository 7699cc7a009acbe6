#include "columnar/ipc.h"
#include "connectors/stream_relation.h"
#include "connectors/token_link.h"
#include "connectors/user/source_task_internal.h"

namespace fleuve::connectors::user {

namespace {

/// How long the reader may take to stop.
constexpr std::int64_t kStopMs = 5000;

class UserStream final : public BasicStreamRelation {
 public:
  UserStream(MadeSource made, plan::Options options)
      : BasicStreamRelation(made.schema, made.source.name, kProvider, std::move(options)), made_(std::move(made)) {}
  const MadeSource& made() const { return made_; }

 private:
  const MadeSource made_;
};

/// The reader of a running query: it lives in one worker from its start to its end.
class UserStreamSource final : public Source {
 public:
  UserStreamSource(MadeSource made, SourceContext context) : made_(std::move(made)), context_(std::move(context)) {}
  ~UserStreamSource() override { End(); }

  Result<void> Start() {
    const TokenLink link(context_.token, token_);
    FLEUVE_ASSIGN(worker_, made_.source.workers->Borrow(made_.source.setup));
    python::Task task;
    task.kind = "data_source_stream";
    task.header.Set("python_version", made_.source.python_version)
        .Set("schema", made_.schema.ToJson())
        .Set("most_rows", MostRows(context_.config));
    task.blobs = {made_.instance};
    task.limits = made_.source.limits;
    task.limits.task_ms = 0;  // the limit of a task is one of each call
    FLEUVE_TRY(worker_->Begin(task, token_));
    worker_->RestartClock(made_.source.limits.task_ms);
    auto ready = Answer();
    if (!ready.ok()) {
      return SourceError(std::move(ready).error(), "plan", "initialize source");
    }
    return {};
  }

  const types::Schema& schema() const override { return made_.schema; }
  std::string description() const override { return "PythonMicroBatchStream[" + made_.source.name + "]"; }

  Result<std::optional<Offset>> InitialOffset() override {
    FLEUVE_ASSIGN(const python::Event event, Call("initialOffset", {{"call", Json("initial")}}));
    return std::optional<Offset>(event.message["offset"].AsString());
  }

  Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>& /*start*/, Admission /*admission*/) override {
    if (!target_) {
      FLEUVE_ASSIGN(const python::Event event, Call("latestOffset", {{"call", Json("latest")}}));
      latest_ = event.message["offset"].AsString();
      return latest_;
    }
    return target_;
  }

  Result<void> PrepareForAvailableNow() override {
    FLEUVE_ASSIGN(target_, LatestOffset(std::nullopt, Admission::kAllAvailable));
    return {};
  }

  /// Tells the reader where the query is: one that reads ahead begins there.
  Result<void> Recover(const std::optional<Offset>& start, const std::optional<Offset>& end) override {
    const std::optional<Offset>& seen = end ? end : start;
    if (seen) {
      FLEUVE_TRY(Partitions(*seen, *seen));
    }
    return {};
  }

  /// Spark tells a reader that a batch is done when the next one is planned.
  Result<void> BatchPlanned(const std::optional<Offset>& start) override {
    if (start) {
      FLEUVE_TRY(Call("commitSource", {{"call", Json("commit")}, {"end", Json(*start)}}));
    }
    return {};
  }

  Result<BatchInput> Read(const std::optional<Offset>& start, const Offset& end) override {
    BatchInput input;
    FLEUVE_ASSIGN(const python::Event event, Partitions(start.value_or(""), end));
    if (event.message.Find("rows") != nullptr) {
      auto rows = std::make_shared<plan::RowScan>();
      if (!event.bytes.empty()) {
        const auto schema = std::make_shared<const types::Schema>(made_.schema);
        FLEUVE_ASSIGN(columnar::IpcContent content, columnar::DecodeIpcStream(event.bytes));
        input.row_count = 0;
        for (columnar::RecordBatch& batch : content.batches) {
          batch.schema = schema;
          input.row_count += batch.row_count();
          rows->batches.push_back(std::move(batch));
        }
      }
      input.rows = std::move(rows);
      return input;
    }
    if (function_.empty()) {
      FLEUVE_ASSIGN(python::Event made, Call("planPartitions", {{"call", Json("function")}}));
      function_ = std::move(made.bytes);
    }
    FLEUVE_ASSIGN(plan::PlanPtr plan,
                  ReadPlan(made_, function_, event.bytes, plan::AttributesOf(made_.schema), context_.config));
    input.make_plans = [plan = std::move(plan)] { return std::vector<plan::PlanPtr>{plan}; };
    return input;
  }

  std::optional<Offset> ReportLatestOffset() override { return latest_; }
  void Stop() override { End(); }

 private:
  Result<python::Event> Partitions(const Offset& start, const Offset& end) {
    return Call("planPartitions", {{"call", Json("partitions")}, {"start", Json(start)}, {"end", Json(end)}});
  }

  /// \param action  as Spark names it in errors.
  Result<python::Event> Call(const std::string& action, Json::Object call) {
    const TokenLink link(context_.token, token_);
    FLEUVE_TRY(token_->Check());
    worker_->RestartClock(made_.source.limits.task_ms);
    FLEUVE_TRY(worker_->Reply(Json(std::move(call))));
    auto event = Answer();
    if (!event.ok()) {
      return StreamError(std::move(event).error(), action);
    }
    return event;
  }

  Result<python::Event> Answer() {
    waiting_ = false;
    FLEUVE_ASSIGN(python::Event event, worker_->Next());
    if (event.kind != python::EventKind::kMessage) {
      return Error::Internal("the reader of a data source answered with something else");
    }
    waiting_ = true;
    return event;
  }

  /// Lets the reader stop, where it waits for a call; the process goes back to the pool.
  void End() {
    if (worker_ && waiting_ && !worker_->is_free() && !token_->cancelled()) {
      waiting_ = false;
      worker_->RestartClock(kStopMs);
      if (worker_->Reply(Json(Json::Object{{"stop", Json(true)}})).ok()) {
        worker_->Next().ok();
      }
    }
    worker_.GiveBack();
  }

  const MadeSource made_;
  const SourceContext context_;
  const CancellationTokenPtr token_ = std::make_shared<CancellationToken>();
  python::BorrowedWorker worker_;
  /// The reader has answered and waits for the next call.
  bool waiting_ = false;
  std::string function_;
  std::optional<Offset> latest_;
  /// Of Trigger.AvailableNow.
  std::optional<Offset> target_;
};

class UserStreamProvider final : public SourceProvider {
 public:
  Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const StreamRequest& request,
                                                              const plan::AnalysisConfig&) override {
    return Error(ErrorKind::kNotFound, "DATA_SOURCE_NOT_FOUND",
                 "Failed to find the data source: " + request.format +
                     ". Make sure the provider name is correct and the package is properly registered and compatible "
                     "with your Spark version.")
        .With("provider", request.format);
  }
  Result<std::unique_ptr<Source>> MakeSource(const std::shared_ptr<const plan::StreamRelation>& relation,
                                             const SourceContext& context) override {
    const auto stream = std::dynamic_pointer_cast<const UserStream>(relation);
    if (stream == nullptr) {
      return Error::Internal("a stream of another kind was taken for a data source in Python");
    }
    auto source = std::make_unique<UserStreamSource>(stream->made(), context);
    FLEUVE_TRY(source->Start());
    return std::unique_ptr<Source>(std::move(source));
  }
};

}  // namespace

Result<std::shared_ptr<const plan::StreamRelation>> OpenStream(const SourceClass& source,
                                                               const std::optional<types::Schema>& schema,
                                                               const plan::Options& options,
                                                               const plan::AnalysisConfig& /*config*/) {
  FLEUVE_ASSIGN(MadeSource made, MakeSource(source, schema, options));
  return std::shared_ptr<const plan::StreamRelation>(std::make_shared<UserStream>(std::move(made), options));
}

void RegisterUserSources(ConnectorRegistry& registry) {
  registry.AddSource(kProvider, std::make_shared<UserStreamProvider>());
}

}  // namespace fleuve::connectors::user
