#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "base/big_stack.h"
#include "base/failpoint.h"
#include "base/heap.h"
#include "base/ids.h"
#include "base/log.h"
#include "stream/query_internal.h"

namespace fleuve::stream {

namespace {

std::int64_t ToMillis(std::int64_t nanos) { return nanos / 1000000; }

}  // namespace

std::string CauseText(const Error& error) {
  if (error.condition().empty() || error.condition().starts_with("_LEGACY")) {
    return error.message();
  }
  if (error.condition().starts_with("DELTA_") ||
      error.condition() == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE") {
    return "[" + error.condition() + "] " + error.message();
  }
  if (error.message().starts_with("Failed to read log file ")) {
    return error.message();
  }
  return error.ToString();
}

MicroBatchQuery::MicroBatchQuery(Parts parts)
    : request_(std::move(parts.request)),
      host_(std::move(parts.host)),
      id_(parts.checkpoint->query_id()),
      run_id_(std::move(parts.run_id)),
      checkpoint_path_(parts.checkpoint->location().path),
      checkpoint_(std::move(parts.checkpoint)),
      sink_(std::move(parts.sink)),
      temporary_checkpoint_(parts.temporary_checkpoint) {
  sync_ = !temporary_checkpoint_ && Conf("fleuve.durability", "strict") != "process";
  min_batches_to_retain_ = std::max<std::int64_t>(1, ConfInt("spark.sql.streaming.minBatchesToRetain", 100));
  progress_limit_ = std::max<std::int64_t>(2, ConfInt("spark.sql.streaming.numRecentProgressUpdates", 100));
  no_data_batches_ = ConfBool("spark.sql.streaming.noDataMicroBatches.enabled", true);
  idle_interval_ms_ = std::max<std::int64_t>(1, ConfInt("spark.sql.streaming.noDataProgressEventInterval", 10000));
  Json started;
  started.Set("id", id_).Set("runId", run_id_).Set("name", request_.name ? Json(*request_.name) : Json(nullptr));
  started.Set("timestamp", IsoMillis(Now()));
  started_event_ = started.Dump();
}

MicroBatchQuery::~MicroBatchQuery() {
  if (!thread_.joinable()) {
    return;
  }
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void MicroBatchQuery::Begin() {
  auto self = shared_from_this();
  thread_ = std::thread([self]() mutable {
    RunOnBigStack([&] { self->Loop(); });
    // The manager's copy may be gone: this thread must not be the one that joins itself.
    self.reset();
  });
}

std::string MicroBatchQuery::Conf(const std::string& key, const std::string& fallback) const {
  if (!request_.config.conf) {
    return fallback;
  }
  auto value = request_.config.conf(key);
  return value && !value->empty() ? *value : fallback;
}

std::int64_t MicroBatchQuery::ConfInt(const std::string& key, std::int64_t fallback) const {
  const std::string text = Conf(key, "");
  if (text.empty()) {
    return fallback;
  }
  try {
    std::size_t used = 0;
    const std::int64_t value = std::stoll(text, &used);
    return used == text.size() || text.substr(used) == "ms" ? value : fallback;
  } catch (const std::exception&) {
    return fallback;
  }
}

bool MicroBatchQuery::ConfBool(const std::string& key, bool fallback) const {
  return Conf(key, fallback ? "true" : "false") == "true";
}

bool MicroBatchQuery::stopping() const {
  std::lock_guard lock(mutex_);
  return stop_requested_ || graceful_stop_;
}

std::string MicroBatchQuery::PrettyId() const {
  const std::string ids = "[id = " + id_ + ", runId = " + run_id_ + "]";
  return request_.name ? *request_.name + " " + ids : ids;
}

void MicroBatchQuery::SetStatus(std::string message) {
  std::lock_guard lock(mutex_);
  status_message_ = std::move(message);
}

void MicroBatchQuery::SetStatus(std::string message, bool is_data_available, bool is_trigger_active) {
  std::lock_guard lock(mutex_);
  status_message_ = std::move(message);
  is_data_available_ = is_data_available;
  is_trigger_active_ = is_trigger_active;
}

QueryStatus MicroBatchQuery::status() const {
  std::lock_guard lock(mutex_);
  return {status_message_, is_data_available_, is_trigger_active_, !ended_};
}

std::vector<std::string> MicroBatchQuery::RecentProgress() const {
  std::vector<std::string> out;
  std::lock_guard lock(mutex_);
  out.reserve(progress_.size());
  for (const auto& progress : progress_) {
    out.push_back(progress.WireJson());
  }
  return out;
}

std::optional<std::string> MicroBatchQuery::LastProgress() const {
  std::lock_guard lock(mutex_);
  return progress_.empty() ? std::nullopt : std::optional<std::string>(progress_.back().WireJson());
}

std::optional<QueryFailure> MicroBatchQuery::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

std::string MicroBatchQuery::Explain(bool extended) const {
  plan::PlanPtr plan;
  {
    std::lock_guard lock(mutex_);
    plan = last_plan_;
  }
  if (!plan || !request_.explain) {
    return "No physical plan. Waiting for data.";
  }
  return request_.explain(plan, extended);
}

void MicroBatchQuery::RequestGracefulStop() {
  std::lock_guard lock(mutex_);
  graceful_stop_ = true;
  wake_.notify_all();
}

bool MicroBatchQuery::WaitEnded(std::int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return ended_; });
}

std::int64_t MicroBatchQuery::ended_at_ms() const {
  std::lock_guard lock(mutex_);
  return ended_at_ms_;
}

Result<void> MicroBatchQuery::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_requested_ = true;
    wake_.notify_all();
  }
  token_->Cancel();
  const std::int64_t timeout = ConfInt("spark.sql.streaming.stopTimeout", 0);
  std::unique_lock lock(mutex_);
  if (timeout <= 0) {
    changed_.wait(lock, [&] { return ended_; });
    return {};
  }
  if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout), [&] { return ended_; })) {
    return Error(ErrorKind::kTransient, "",
                 "Stream Execution thread for stream " + PrettyId() + " failed to stop within " +
                     std::to_string(timeout) +
                     " milliseconds (specified by spark.sql.streaming.stopTimeout). See the "
                     "cause on what was being executed in the streaming query thread.");
  }
  return {};
}

Result<bool> MicroBatchQuery::AwaitTermination(std::optional<std::int64_t> timeout_ms,
                                               const CancellationTokenPtr& token) {
  std::int64_t key = 0;
  if (token) {
    key = token->AddCallback([this] {
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
  }
  bool ended = false;
  std::optional<QueryFailure> failure;
  {
    std::unique_lock lock(mutex_);
    const auto done = [&] { return ended_ || (token && token->cancelled()); };
    if (timeout_ms) {
      changed_.wait_for(lock, std::chrono::milliseconds(*timeout_ms), done);
    } else {
      changed_.wait(lock, done);
    }
    ended = ended_;
    failure = failure_;
  }
  if (token) {
    token->RemoveCallback(key);
  }
  if (!ended && token) {
    FLEUVE_TRY(token->Check());
  }
  if (ended && failure) {
    return failure->error;
  }
  return ended;
}

Result<void> MicroBatchQuery::ProcessAllAvailable(const CancellationTokenPtr& token) {
  std::int64_t key = 0;
  if (token) {
    key = token->AddCallback([this] {
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
  }
  bool ended = false;
  std::optional<QueryFailure> failure;
  {
    std::unique_lock lock(mutex_);
    // Only a look that begins from now on proves that nothing is left.
    const std::int64_t wanted = triggers_begun_ + 1;
    woken_ = true;
    wake_.notify_all();
    changed_.wait(lock, [&] { return ended_ || last_idle_trigger_ >= wanted || (token && token->cancelled()); });
    ended = ended_;
    failure = failure_;
  }
  if (token) {
    token->RemoveCallback(key);
    if (!ended) {
      FLEUVE_TRY(token->Check());
    }
  }
  if (failure) {
    return failure->error;
  }
  return {};
}

void MicroBatchQuery::Fail(Error error) {
  QueryFailure failure{Error::Internal(""), "", error.condition()};
  const std::string cause = CauseText(error);
  if (failure.cause_condition.starts_with("_LEGACY")) {
    failure.cause_condition.clear();
  }
  failure.description = cause + "\n=== Streaming Query ===\nIdentifier: " + PrettyId() +
                        "\nCurrent Committed Offsets: " + OffsetsText(false) +
                        "\nCurrent Available Offsets: " + OffsetsText(true) +
                        "\n\nCurrent State: ACTIVE\nThread State: RUNNABLE";
  if (initialized_) {
    std::string plan =
        request_.explain ? request_.explain(request_.plan, false) : std::string("WriteToMicroBatchDataSource");
    failure.description += "\n\nLogical Plan:\n" + plan + "\n";
  }
  failure.error = Error(error.kind(), "STREAM_FAILED",
                        "Query [id = " + id_ + ", runId = " + run_id_ + "] terminated with exception: " + cause)
                      .With("id", id_)
                      .With("runId", run_id_)
                      .With("message", cause)
                      .CausedBy(error);
  LogWarn("query " + PrettyId() + " failed: " + error.ToString());
  std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
}

std::string MicroBatchQuery::OffsetsText(bool planned) const {
  std::string out = "{";
  bool first = true;
  for (const auto& state : sources_) {
    const auto& offset = planned && state.planned ? state.planned : state.committed;
    if (!offset || !state.source) {
      continue;
    }
    if (!first) {
      out += ", ";
    }
    first = false;
    out += state.source->description() + ": " + *offset;
  }
  return out + "}";
}

void MicroBatchQuery::Cleanup(bool failed) {
  for (auto& state : sources_) {
    if (state.source) {
      state.source->SetDataListener(nullptr);
      state.source->Stop();
    }
  }
  if (sink_) {
    sink_->Stop();
  }
  if (!failed && checkpoint_) {
    if (auto synced = SyncUnsynced({}, nullptr); !synced.ok()) {
      LogError("query " + PrettyId() + ": the last commit could not be synced: " + synced.error().ToString());
    }
  }
  sources_.clear();
  sink_.reset();
  if (checkpoint_) {
    const storage::Location location = checkpoint_->location();
    checkpoint_.reset();
    if (temporary_checkpoint_ &&
        (!failed || ConfBool("spark.sql.streaming.forceDeleteTempCheckpointLocation", false))) {
      location.store->DeleteAll(location.path).IgnoreBecause("a temporary folder; the system cleans it too");
    }
  }
  ReturnFreedMemory();
}

Result<void> MicroBatchQuery::RunGuarded() {
  // Unwinding has given back what the batch held; what was committed stays so.
  const auto no_memory = [this] {
    return Error(ErrorKind::kResourceExhausted, "FLEUVE_OUT_OF_MEMORY",
                 "The process has no memory left for the query " + PrettyId() +
                     ". Start it again from its checkpoint with smaller batches, less state (a shorter watermark, a "
                     "smaller fleuve.state.memoryLimit tells sooner), fewer queries beside it, or more memory.");
  };
  try {
    return RunQuery();
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::system_error&) {
    return no_memory();  // no thread could be made
  }
}

void MicroBatchQuery::Loop() {
  auto ran = RunGuarded();
  bool failed = false;
  if (!ran.ok()) {
    bool stopped = false;
    {
      std::lock_guard lock(mutex_);
      stopped = stop_requested_;
    }
    const bool interrupted = stopped && (ran.error().kind() == ErrorKind::kCancelled || token_->cancelled());
    if (!interrupted) {
      failed = true;
      Fail(std::move(ran).error());
    }
  }
  Cleanup(failed);
  std::string cause_text;
  std::string cause_condition;
  {
    std::lock_guard lock(mutex_);
    if (failure_) {
      cause_text = CauseText(failure_->error.cause() != nullptr ? *failure_->error.cause() : failure_->error);
      cause_condition = failure_->cause_condition;
    }
  }
  Json event;
  event.Set("id", id_).Set("runId", run_id_);
  event.Set("exception", failed ? Json(cause_text) : Json(nullptr));
  event.Set("errorClassOnException", cause_condition.empty() ? Json(nullptr) : Json(cause_condition));
  host_->post(EventKind::kTerminated, request_.session_key, event.Dump());
  auto self = shared_from_this();
  {
    std::lock_guard lock(mutex_);
    status_message_ = failed ? "Terminated with exception: " + cause_text : "Stopped";
    is_data_available_ = false;
    is_trigger_active_ = false;
    ended_at_ms_ = Now();
  }
  // The manager's list first, so that a query that is seen to have ended is not listed as active.
  host_->ended(self);
  std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
  wake_.notify_all();
}

void MicroBatchQuery::AppendProgress(Progress progress) {
  host_->post(EventKind::kProgress, request_.session_key, "{\"progress\":" + progress.EventJson() + "}");
  std::lock_guard lock(mutex_);
  progress_.push_back(std::move(progress));
  while (static_cast<std::int64_t>(progress_.size()) >= progress_limit_) {
    progress_.pop_front();
  }
}

void MicroBatchQuery::RecordProgress(bool ran, std::int64_t trigger_start_ns) {
  const std::int64_t now = Now();
  const bool first_idle = !ran && !last_idle_progress_ms_;
  if (!ran && last_idle_progress_ms_ && now - *last_idle_progress_ms_ < idle_interval_ms_) {
    return;
  }
  Progress progress;
  progress.id = id_;
  progress.run_id = run_id_;
  progress.name = request_.name;
  progress.trigger_start_ms = trigger_start_ms_;
  progress.batch_id = batch_id_.value;
  progress.batch_duration_ms = ToMillis(Ticks() - trigger_start_ns);
  progress.duration_ms = durations_;
  if (previous_trigger_start_ms_) {
    progress.since_previous_s = static_cast<double>(trigger_start_ms_ - *previous_trigger_start_ms_) / 1000;
  }
  progress.event_time =
      watermark_.EventTime(ran ? batch_watermark_ms_ : watermark_.current_ms(), ran && batch_has_new_data_);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const SourceState& state = sources_[i];
    SourceProgress source;
    source.description = state.source->description();
    source.start_offset = state.committed;
    source.end_offset = ran ? state.planned : state.committed;
    source.latest_offset = state.source->ReportLatestOffset();
    source.rows = ran && i < input_rows_.size() ? input_rows_[i] : 0;
    source.metrics = state.source->Metrics(source.end_offset);
    progress.sources.push_back(std::move(source));
  }
  for (const auto& one : state_->Progress()) {
    progress.state_operators.push_back(one.ToJson(!ran));
  }
  progress.sink_description = sink_->description();
  progress.sink_rows = ran ? output_rows_ : -1;
  if (ran) {
    progress.observed = observed_;
    last_idle_progress_ms_ = now;
    AppendProgress(std::move(progress));
    return;
  }
  last_idle_progress_ms_ = now;
  if (first_idle) {
    std::lock_guard lock(mutex_);
    progress_.push_back(std::move(progress));
    return;
  }
  {
    std::lock_guard lock(mutex_);
    progress_.push_back(std::move(progress));
    while (static_cast<std::int64_t>(progress_.size()) >= progress_limit_) {
      progress_.pop_front();
    }
  }
  Json idle;
  idle.Set("id", id_).Set("runId", run_id_).Set("timestamp", IsoMillis(trigger_start_ms_));
  host_->post(EventKind::kIdle, request_.session_key, idle.Dump());
}

}  // namespace fleuve::stream
