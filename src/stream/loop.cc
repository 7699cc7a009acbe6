// The life of one batch and of the loop around it. The order of its steps and of the two groups of syncs is what makes
// every row appear exactly once:
//
//   offsets/N -> run into hidden files -> W1: sync files, offsets/N, commits/N-1, the staged commit -> commit
//             -> W2: sync the log's folder -> commits/N (synced with the next W1, or when the query rests)

#include <algorithm>
#include <chrono>

#include "base/bytes.h"
#include "base/failpoint.h"
#include "base/ids.h"
#include "base/log.h"
#include "stream/batch_plan_internal.h"
#include "stream/event_time_internal.h"
#include "stream/query_internal.h"

namespace fleuve::stream {

namespace {

/// Settings that Spark fixes in the offset log, in the order it writes them, with their defaults.
constexpr std::pair<const char*, const char*> kPinned[] = {
    {state::kProviderClassKey, state::kMemoryProviderClass},
    {"spark.sql.streaming.stateStore.rocksdb.formatVersion", "5"},
    {"spark.sql.streaming.stateStore.encodingFormat", "unsaferow"},
    {"spark.sql.streaming.statefulOperator.useStrictDistribution", "true"},
    {"spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion", "2"},
    {"spark.sql.streaming.multipleWatermarkPolicy", "min"},
    {"spark.sql.streaming.aggregation.stateFormatVersion", "2"},
    {"spark.sql.shuffle.partitions", "200"},
    {"spark.sql.streaming.join.stateFormatVersion", "2"},
    {"spark.sql.streaming.stateStore.compression.codec", "lz4"},
    {"spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan", "false"},
};

constexpr std::int64_t kFirstPollMs = 10;
constexpr std::int64_t kLongestPollMs = 100;

Error BehindSink(const std::string& checkpoint, const std::string& sink, std::int64_t batch, const std::string& why) {
  return Error(ErrorKind::kConflict, "FLEUVE_CHECKPOINT_BEHIND_SINK",
               "The sink " + sink + " already holds batch " + std::to_string(batch) +
                   " of this query, but the checkpoint " + checkpoint +
                   " has not planned it: the checkpoint was restored "
                   "from an older copy, or another query uses it. " +
                   why +
                   " Restore a checkpoint that is at least as new as the sink, or start with a new checkpoint location "
                   "and a starting position after the rows that the sink holds.");
}

}  // namespace

void MicroBatchQuery::AddDuration(const char* key, std::int64_t start_ns) {
  durations_[key] += (Ticks() - start_ns) / 1000000;
}

std::vector<std::pair<std::string, std::string>> MicroBatchQuery::PinnedConf(
    const std::vector<std::pair<std::string, std::string>>& found) const {
  std::vector<std::pair<std::string, std::string>> conf;
  for (const auto& [key, fallback] : kPinned) {
    const auto logged =
        std::find_if(found.begin(), found.end(), [&key = key](const auto& entry) { return entry.first == key; });
    std::string value = logged != found.end() ? logged->second : Conf(key, fallback);
    if (logged == found.end() && key == std::string_view(state::kProviderClassKey) &&
        operators::KeepsState(request_.plan, request_.sink.output_mode)) {
      // Another engine refuses our state by this name.
      value = state::kProviderClass;
    }
    conf.emplace_back(key, std::move(value));
  }
  return conf;
}

Result<void> MicroBatchQuery::RunQuery() {
  FLEUVE_TRY(Initialize());
  return RunTriggers();
}

Result<void> MicroBatchQuery::Initialize() {
  SetStatus("Initializing sources");
  FLEUVE_ASSIGN(const checkpoint::Recovered recovered, checkpoint_->Recover());
  const auto streams = DistinctStreams(request_.plan);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::string provider_name = AsciiLower(streams[i]->provider());
    connectors::SourceProvider* provider = host_->options.connectors->source(provider_name);
    if (provider == nullptr) {
      return Error::Unsupported("the streaming source '" + provider_name + "'");
    }
    connectors::SourceContext context;
    context.index = static_cast<int>(i);
    context.query_id = id_;
    context.run_id = run_id_;
    context.checkpoint = checkpoint_->location();
    context.metadata_path = checkpoint_->SourceFolder(context.index);
    context.is_restart = recovered.newest_planned.has_value();
    context.config = request_.config;
    context.token = token_;
    context.event_time = EventTimeOf(request_.plan, streams[i].get());
    SourceState state;
    state.relation = streams[i];
    FLEUVE_ASSIGN(state.source, provider->MakeSource(streams[i], context));
    sources_.push_back(std::move(state));
  }
  for (auto& state : sources_) {
    FLEUVE_ASSIGN(state.initial, state.source->InitialOffset());
    auto records = state.source->TakeDurableRecords();
    checkpoint_->AddUnsynced(std::move(records.files), std::move(records.folders));
  }
  pinned_conf_ = PinnedConf(recovered.planned.conf);
  const auto policy = std::find_if(pinned_conf_.begin(), pinned_conf_.end(), [](const auto& entry) {
    return entry.first == "spark.sql.streaming.multipleWatermarkPolicy";
  });
  FLEUVE_ASSIGN(watermark_, WatermarkTracker::Make(request_.plan, policy->second));
  FLEUVE_TRY(MakeState(recovered));
  if (recovered.newest_planned) {
    const auto& planned = recovered.planned;
    const std::size_t logged = planned.offsets.size();
    if (logged != sources_.size()) {
      return Error(ErrorKind::kInvalidArgument, "",
                   "assertion failed: There are [" + std::to_string(logged) +
                       "] sources in the checkpoint offsets and now there are [" + std::to_string(sources_.size()) +
                       "] sources requested by the query. Cannot continue.");
    }
    offsets_version_ = planned.version;
    offsets_source_info_ = planned.source_info;
    last_batch_timestamp_ms_ = planned.timestamp_ms;
    watermark_.Restore(planned.watermark_ms);
    const std::int64_t newest = recovered.newest_planned->value;
    if (recovered.newest_committed && recovered.newest_committed->value == newest) {
      batch_id_ = BatchId(newest + 1);
      watermark_.Restore(recovered.committed.next_watermark_ms);
      late_watermark_ms_ = planned.watermark_ms;
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        sources_[i].committed = planned.offsets[i];
      }
    } else {
      batch_id_ = BatchId(newest);
      batch_planned_ = true;
      batch_recovered_ = true;
      batch_timestamp_ms_ = planned.timestamp_ms;
      batch_watermark_ms_ = planned.watermark_ms;
      late_watermark_ms_ = recovered.before ? recovered.before->watermark_ms : planned.watermark_ms;
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        if (recovered.before && i < recovered.before->offsets.size()) {
          sources_[i].committed = recovered.before->offsets[i];
        }
        sources_[i].planned = planned.offsets[i];
      }
      FLEUVE_TRY(FillMissingCommits(recovered));
    }
    FLEUVE_TRY(Recover());
  }
  FLEUVE_TRY(CheckSinkIdentity());
  for (auto& state : sources_) {
    state.has_listener = state.source->SetDataListener([this] {
      std::lock_guard lock(mutex_);
      woken_ = true;
      wake_.notify_all();
    });
  }
  initialized_ = true;
  return Failpoint("stream.initialized");
}

Result<void> MicroBatchQuery::FillMissingCommits(const checkpoint::Recovered& recovered) {
  const std::int64_t newest = recovered.newest_planned->value;
  if (!recovered.newest_committed || recovered.newest_committed->value >= newest - 1) {
    if (recovered.newest_committed || newest == 0) {
      return {};
    }
  }
  // A later batch was planned, so these are committed: their entries were lost. The next batch's offsets know the
  // watermark that each of them ended with.
  const std::int64_t first = recovered.newest_committed ? recovered.newest_committed->value + 1 : newest - 1;
  for (std::int64_t batch = first; batch < newest; ++batch) {
    auto next = checkpoint_->ReadOffsets(BatchId(batch + 1));
    if (!next.ok()) {
      if (next.error().kind() == ErrorKind::kNotFound) {
        continue;
      }
      return std::move(next).error();
    }
    LogWarn("query " + PrettyId() + ": commits/" + std::to_string(batch) + " was missing and is written again");
    checkpoint::CommitEntry entry;
    entry.next_watermark_ms = next->watermark_ms;
    FLEUVE_TRY(checkpoint_->WriteCommit(BatchId(batch), entry));
  }
  return {};
}

Result<void> MicroBatchQuery::Recover() {
  bool record_missing = false;
  std::string why;
  for (auto& state : sources_) {
    auto recovered = state.source->Recover(state.start(), batch_planned_ ? state.planned : std::nullopt);
    if (!recovered.ok()) {
      if (!batch_planned_ || recovered.error().kind() != ErrorKind::kNotFound) {
        return std::move(recovered).error();
      }
      record_missing = true;
      why = recovered.error().message();
    }
    auto records = state.source->TakeDurableRecords();
    checkpoint_->AddUnsynced(std::move(records.files), std::move(records.folders));
  }
  if (!record_missing) {
    return {};
  }
  FLEUVE_ASSIGN(const connectors::SinkRecord held, sink_->Newest());
  if (held.newest_batch >= batch_id_.value) {
    return BehindSink(checkpoint_->location().path, sink_->description(), batch_id_.value, why);
  }
  FLEUVE_TRY(checkpoint_->DropPlanned(batch_id_));
  batch_planned_ = false;
  batch_recovered_ = false;
  for (auto& state : sources_) {
    state.planned.reset();
  }
  return {};
}

Result<void> MicroBatchQuery::CheckSinkIdentity() {
  FLEUVE_ASSIGN(const std::string identity, sink_->Identity());
  // A table that is not there yet has no identity either: a query that has written one before does not start anew.
  const bool may_be_missing = identity.empty() && !initialized_ && sink_->store() != nullptr;
  if (temporary_checkpoint_ || (identity.empty() && !may_be_missing)) {
    return {};
  }
  FLEUVE_ASSIGN(const auto record, checkpoint_->ReadRecord("sink"));
  if (!record && identity.empty()) {
    return {};
  }
  if (record) {
    auto parsed = Json::Parse(*record);
    const std::string known = parsed.ok() ? (*parsed)["identity"].AsString() : "";
    if (!known.empty() && known != identity) {
      return Error(ErrorKind::kConflict, "FLEUVE_SINK_CHANGED",
                   "The sink " + sink_->description() + " is another one than this query wrote before (it was " +
                       known + (identity.empty() ? ", now it is not there" : ", now it is " + identity) +
                       "): the rows of earlier batches are not in it. Start with a new "
                       "checkpoint location, or restore the table.");
    }
    if (known == identity) {
      sink_identity_recorded_ = true;
      return {};
    }
  }
  Json text;
  text.Set("identity", identity);
  FLEUVE_TRY(checkpoint_->WriteRecord("sink", text.Dump()));
  sink_identity_recorded_ = true;
  return {};
}

Result<void> MicroBatchQuery::RunTriggers() {
  for (;;) {
    if (stopping()) {
      return {};
    }
    const std::int64_t start_ms = Now();
    FLEUVE_ASSIGN(const bool ran, RunTrigger());
    FLEUVE_ASSIGN(const bool go_on, WaitForNextTrigger(start_ms, ran));
    if (!go_on) {
      return {};
    }
  }
}

Result<bool> MicroBatchQuery::RunTrigger() {
  const std::int64_t start_ns = Ticks();
  trigger_start_ms_ = Now();
  durations_.clear();
  std::int64_t trigger = 0;
  {
    std::lock_guard lock(mutex_);
    trigger = ++triggers_begun_;
    woken_ = false;
    is_trigger_active_ = true;
    is_data_available_ = false;
  }
  bool ran = batch_planned_;
  if (!ran) {
    FLEUVE_ASSIGN(ran, PlanBatch());
  } else {
    look_again_ = false;
  }
  if (ran) {
    batch_has_new_data_ = std::any_of(sources_.begin(), sources_.end(), [](const SourceState& state) {
      return state.planned && state.planned != state.committed;
    });
    SetStatus(batch_has_new_data_ ? "Processing new data" : "No new data but cleaning up state", batch_has_new_data_,
              true);
    FLEUVE_TRY(RunBatch());
  } else {
    SetStatus("Waiting for data to arrive", false, true);
  }
  AddDuration("triggerExecution", start_ns);
  RecordProgress(ran, start_ns);
  previous_trigger_start_ms_ = trigger_start_ms_;
  if (ran) {
    for (auto& state : sources_) {
      state.committed = state.planned ? state.planned : state.committed;
    }
    batch_id_ = batch_id_.Next();
    batch_planned_ = false;
    batch_recovered_ = false;
    late_watermark_ms_ = batch_watermark_ms_;
  } else if (!look_again_ && checkpoint_->has_unsynced()) {
    // Nothing follows: what the last batch left for the next one's syncs is synced now.
    FLEUVE_TRY(SyncUnsynced({}, nullptr));
  }
  std::lock_guard lock(mutex_);
  is_trigger_active_ = false;
  if (!ran && !look_again_) {
    last_idle_trigger_ = trigger;
    changed_.notify_all();
  }
  return ran;
}

Result<bool> MicroBatchQuery::WaitForNextTrigger(std::int64_t trigger_start_ms, bool ran) {
  const TriggerSpec& trigger = request_.trigger;
  if (trigger.kind == TriggerKind::kOnce) {
    return false;
  }
  if (trigger.kind == TriggerKind::kAvailableNow && !ran && !look_again_) {
    return false;
  }
  const bool at_once = ran && (trigger.kind == TriggerKind::kAvailableNow || trigger.interval_ms == 0);
  if (at_once) {
    poll_ms_ = 0;
    return !stopping();
  }
  if (trigger.kind == TriggerKind::kProcessingTime && trigger.interval_ms > 0) {
    const std::int64_t interval = trigger.interval_ms;
    const std::int64_t next = trigger_start_ms / interval * interval + interval;
    const std::int64_t now = Now();
    if (now >= next) {
      LogWarn("query " + PrettyId() + ": Current batch is falling behind. The trigger interval is " +
              std::to_string(interval) + " milliseconds, but spent " + std::to_string(now - trigger_start_ms) +
              " milliseconds");
      return !stopping();
    }
    if (checkpoint_->has_unsynced()) {
      FLEUVE_TRY(SyncUnsynced({}, nullptr));
    }
    std::unique_lock lock(mutex_);
    status_message_ = "Waiting for next trigger";
    // The wall clock may jump meanwhile: never longer than one interval.
    wake_.wait_for(lock, std::chrono::milliseconds(std::min(next - now, interval)),
                   [&] { return stop_requested_ || graceful_stop_; });
    return !stop_requested_ && !graceful_stop_;
  }
  std::int64_t wait_ms = idle_interval_ms_;
  if (last_idle_progress_ms_) {
    wait_ms = std::max<std::int64_t>(1, *last_idle_progress_ms_ + idle_interval_ms_ - Now());
  }
  if (look_again_) {
    wait_ms = std::min(wait_ms, std::max<std::int64_t>(1, look_again_ms_.value_or(kFirstPollMs)));
  }
  const bool polls =
      std::any_of(sources_.begin(), sources_.end(), [](const SourceState& s) { return !s.has_listener; });
  if (polls) {
    poll_ms_ = poll_ms_ == 0 ? kFirstPollMs : std::min(poll_ms_ * 2, kLongestPollMs);
    wait_ms = std::min(wait_ms, poll_ms_);
  }
  std::unique_lock lock(mutex_);
  if (!woken_) {
    wake_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                   [&] { return woken_ || stop_requested_ || graceful_stop_; });
  }
  return !stop_requested_ && !graceful_stop_;
}

Result<bool> MicroBatchQuery::PlanBatch() {
  look_again_ = false;
  look_again_ms_.reset();
  FLEUVE_TRY(FollowSink());
  if (batch_planned_) {
    return true;
  }
  const std::int64_t start_ns = Ticks();
  if (request_.trigger.kind == TriggerKind::kAvailableNow && !sources_prepared_) {
    for (auto& state : sources_) {
      FLEUVE_TRY(state.source->PrepareForAvailableNow());
    }
    sources_prepared_ = true;
  }
  const auto admission = request_.trigger.kind == TriggerKind::kOnce ? connectors::Admission::kAllAvailable
                                                                     : connectors::Admission::kRateLimited;
  bool new_data = false;
  for (auto& state : sources_) {
    SetStatus("Getting offsets from " + state.source->description());
    FLEUVE_ASSIGN(auto end, state.source->LatestOffset(state.start(), admission));
    auto records = state.source->TakeDurableRecords();
    checkpoint_->AddUnsynced(std::move(records.files), std::move(records.folders));
    if (auto again = state.source->LookAgainMs()) {
      look_again_ = true;
      look_again_ms_ = std::min(look_again_ms_.value_or(*again), *again);
    }
    state.planned = end ? std::move(end) : state.committed;
    new_data = new_data || (state.planned && state.planned != state.committed);
  }
  AddDuration("latestOffset", start_ns);
  FLEUVE_TRY(Failpoint("stream.offsets.planned"));
  if (!new_data && !(no_data_batches_ && StateNeedsBatch())) {
    return false;
  }
  look_again_ = false;
  const std::int64_t write_ns = Ticks();
  SetStatus("Writing offsets to log");
  FLEUVE_TRY(WriteOffsets());
  FLEUVE_TRY(Failpoint("stream.offsets.written"));
  for (auto& state : sources_) {
    if (state.committed) {
      FLEUVE_TRY(state.source->BatchPlanned(*state.committed));
    }
  }
  AddDuration("walCommit", write_ns);
  batch_planned_ = true;
  return true;
}

Result<void> MicroBatchQuery::WriteOffsets() {
  // The time of a batch never falls below the one before, whatever the wall clock does.
  batch_timestamp_ms_ = std::max(Now(), last_batch_timestamp_ms_);
  last_batch_timestamp_ms_ = batch_timestamp_ms_;
  batch_watermark_ms_ = watermark_.current_ms();
  if (batch_id_.value == 0) {
    late_watermark_ms_ = batch_watermark_ms_;
  }
  checkpoint::OffsetEntry entry;
  entry.version = offsets_version_;
  entry.source_info = offsets_source_info_;
  entry.watermark_ms = batch_watermark_ms_;
  entry.timestamp_ms = batch_timestamp_ms_;
  entry.conf = pinned_conf_;
  for (const auto& state : sources_) {
    entry.offsets.push_back(state.planned);
  }
  return checkpoint_->WriteOffsets(batch_id_, entry);
}

bool MicroBatchQuery::StateNeedsBatch() const { return state_->NeedsBatch(watermark_.current_ms()); }

Result<void> MicroBatchQuery::MakeState(const checkpoint::Recovered& recovered) {
  operators::StatefulOptions options;
  options.checkpoint = checkpoint_->location();
  options.output_mode = request_.sink.output_mode;
  options.config = request_.config;
  options.versions_to_retain = min_batches_to_retain_;
  options.memory_limit_bytes = request_.state_memory_limit_bytes > 0 ? request_.state_memory_limit_bytes
                                                                     : ResourceBudget::DefaultMemoryBytes() / 12 * 5;
  const std::string provider = Conf(state::kProviderClassKey, state::kMemoryProviderClass);
  if (provider == state::kSpillingProviderClass) {
    options.spill_folder = host_->options.scratch + "/state";
  } else if (provider != state::kMemoryProviderClass && provider != state::kProviderClass &&
             operators::KeepsState(request_.plan, request_.sink.output_mode)) {
    return Error::Unsupported("the state store provider " + provider + " (there are " + state::kMemoryProviderClass +
                              " and " + std::string(state::kSpillingProviderClass) + ")");
  }
  for (const auto& [key, value] : pinned_conf_) {
    if (key == "spark.sql.shuffle.partitions") {
      options.partitions = std::max<std::int64_t>(1, std::atoll(value.c_str()));
    }
  }
  FLEUVE_ASSIGN(state_, operators::StatefulQuery::Make(request_.plan, std::move(options)));
  committed_state_ids_ = recovered.committed.state_ids;
  return {};
}

Result<std::optional<connectors::DurableRecords>> MicroBatchQuery::OpenState() {
  using Adopted = std::optional<connectors::DurableRecords>;
  if (state_->is_open()) {
    return Adopted();
  }
  if (batch_recovered_ && !state_->stateless()) {
    FLEUVE_ASSIGN(const connectors::SinkRecord held, sink_->Newest());
    if (held.newest_batch >= batch_id_.value) {
      // The sink's commit names the run whose state belongs to it.
      FLEUVE_ASSIGN(const connectors::SinkRecord record, sink_->FindBatch(batch_id_));
      FLEUVE_ASSIGN(const auto watermark_ms, state_->Adopt(batch_id_, record.attempt_id));
      if (watermark_ms) {
        LogWarn("query " + PrettyId() + ": the sink already holds batch " + std::to_string(batch_id_.value) +
                "; the state that its run wrote is taken over");
        watermark_.Restore(*watermark_ms);
        return Adopted(record.after_commit);
      }
      LogWarn("query " + PrettyId() + ": the sink already holds batch " + std::to_string(batch_id_.value) +
              ", but the state of its run is not in the checkpoint; the batch runs again for its state");
    }
  }
  FLEUVE_TRY(state_->Open(batch_id_, committed_state_ids_));
  return Adopted();
}

Result<void> MicroBatchQuery::FollowSink() {
  if (!sink_followed_) {
    FLEUVE_ASSIGN(const connectors::SinkRecord held, sink_->Newest());
    sink_newest_ = held.newest_batch;
    sink_followed_ = true;
  }
  if (sink_newest_ < batch_id_.value) {
    return {};
  }
  // The sink is ahead of the checkpoint: the batch must be what the sink's commit says it was.
  const std::string checkpoint = checkpoint_->location().path;
  const bool stand_alone = std::all_of(sources_.begin(), sources_.end(),
                                       [](const SourceState& s) { return s.source->offsets_stand_alone(); });
  if (!stand_alone) {
    return BehindSink(checkpoint, sink_->description(), batch_id_.value,
                      "Its sources keep records in the checkpoint that cannot be rebuilt from the sink.");
  }
  FLEUVE_ASSIGN(const connectors::SinkRecord held, sink_->FindBatch(batch_id_));
  if (held.offsets.size() != sources_.size()) {
    return BehindSink(checkpoint, sink_->description(), batch_id_.value,
                      "The sink's history does not tell what that batch read.");
  }
  LogWarn("query " + PrettyId() + ": the sink already holds batch " + std::to_string(batch_id_.value) +
          "; its offsets are taken from the sink's commit");
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    sources_[i].planned = held.offsets[i] == "-" ? std::nullopt : std::optional<std::string>(held.offsets[i]);
  }
  FLEUVE_TRY(WriteOffsets());
  batch_planned_ = true;
  batch_recovered_ = true;
  return {};
}

Result<void> MicroBatchQuery::SyncUnsynced(const connectors::DurableRecords& sink_records, const char* duration_key) {
  checkpoint::Unsynced own = checkpoint_->TakeUnsynced();
  if (!sync_) {
    return {};
  }
  const std::int64_t start_ns = Ticks();
  storage::ObjectStore* sink_store = sink_ ? sink_->store() : nullptr;
  storage::ObjectStore* own_store = checkpoint_->location().store.get();
  std::vector<std::string> files = std::move(own.files);
  std::vector<std::string> folders = std::move(own.folders);
  if (sink_store == own_store) {
    files.insert(files.end(), sink_records.files.begin(), sink_records.files.end());
    folders.insert(folders.end(), sink_records.folders.begin(), sink_records.folders.end());
    std::sort(folders.begin(), folders.end());
    folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  } else if (sink_store != nullptr && !(sink_records.files.empty() && sink_records.folders.empty())) {
    FLEUVE_TRY(sink_store->Sync(sink_records.files, sink_records.folders));
  }
  if (!files.empty() || !folders.empty()) {
    FLEUVE_TRY(own_store->Sync(files, folders));
  }
  if (duration_key != nullptr) {
    AddDuration(duration_key, start_ns);
  }
  return {};
}

Result<void> MicroBatchQuery::RunBatch() {
  FLEUVE_TRY(token_->Check());
  if (!plan_checked_) {
    FLEUVE_TRY(plan::CheckStreamingBatch(request_.plan, RulesOf(request_)));
    plan_checked_ = true;
  }
  input_rows_.assign(sources_.size(), 0);
  output_rows_ = -1;
  observed_.clear();

  std::int64_t mark_ns = Ticks();
  std::vector<connectors::BatchInput> inputs(sources_.size());
  std::vector<std::shared_ptr<const plan::StreamRelation>> streams;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    SourceState& state = sources_[i];
    streams.push_back(state.relation);
    if (state.planned && state.planned != state.start()) {
      FLEUVE_ASSIGN(inputs[i], state.source->Read(state.start(), *state.planned));
    }
  }
  AddDuration("getBatch", mark_ns);

  mark_ns = Ticks();
  FLEUVE_ASSIGN(const auto adopted, OpenState());
  if (adopted) {
    if (!adopted->files.empty() || !adopted->folders.empty()) {
      FLEUVE_TRY(SyncUnsynced(*adopted, "syncAfterCommit"));
    }
    return FinishBatch();
  }
  connectors::SinkBatch batch;
  const auto bind = [&](const plan::PlanPtr& fragment) {
    return MakeBatchPlan(fragment, streams, inputs, request_, batch_timestamp_ms_ * 1000);
  };
  FLEUVE_ASSIGN(batch.plan, bind(request_.plan));
  {
    plan::PlanPtr to_explain = WithoutRows(batch.plan);
    std::lock_guard lock(mutex_);
    last_plan_.swap(to_explain);
  }
  batch.batch_id = batch_id_;
  batch.is_recovered = batch_recovered_;
  batch.config = request_.config;
  batch.config.now_micros = batch_timestamp_ms_ * 1000;
  batch.token = token_;
  batch.attempt_id = NewUuid();
  Json::Array offsets;
  for (const auto& state : sources_) {
    offsets.emplace_back(state.planned ? *state.planned : std::string("-"));
  }
  batch.commit_fields.Set("queryId", id_).Set("batchId", batch_id_.value).Set("offsets", std::move(offsets));
  batch.observer = std::make_shared<engine::RunObserver>();
  // The last plan that the sink ran, then the fragments that ran below stateful operators.
  std::vector<plan::PlanPtr> prepared = {nullptr};
  batch.on_prepared = [&prepared](const plan::PlanPtr& plan) { prepared[0] = plan; };
  AddDuration("queryPlanning", mark_ns);

  if (sink_->run_is_effect()) {
    FLEUVE_TRY(SyncUnsynced({}, "syncBeforeCommit"));
    FLEUVE_TRY(Failpoint("stream.before_effect"));
  }
  mark_ns = Ticks();
  batch.borrow_engine = [host = host_](const CancellationTokenPtr& token) -> Result<connectors::EngineLoan> {
    connectors::EngineLoan loan;
    if (host->options.budget) {
      FLEUVE_ASSIGN(loan.lease, host->options.budget->Acquire(1, token));
    }
    FLEUVE_ASSIGN(loan.engine, host->engines->Borrow(loan.lease ? loan.lease->memory_bytes() : 0));
    return loan;
  };
  connectors::EngineLoan loan;  // its engine outlives the staged batch, whose commit may run it again
  if (!state_->stateless()) {
    FLEUVE_ASSIGN(loan, batch.borrow_engine(token_));
    operators::BatchRun run;
    run.attempt_id = batch.attempt_id;
    // Where several stateful operators are not reckoned with, one watermark decides both
    // (spark.sql.streaming.statefulOperator.allowMultiple).
    run.late_watermark_ms = RulesOf(request_).allow_multiple ? late_watermark_ms_ : batch_watermark_ms_;
    run.watermark_ms = batch_watermark_ms_;
    run.timestamp_ms = batch_timestamp_ms_;
    run.engine = loan.engine.get();
    run.config = batch.config;
    run.token = token_;
    run.observer = batch.observer;
    run.bind = bind;
    run.on_prepared = [&prepared](const plan::PlanPtr& plan) { prepared.push_back(plan); };
    FLEUVE_ASSIGN(batch.plan, state_->Run(run));
    FLEUVE_TRY(Failpoint("stream.state.run"));
  }
  if (sink_->runs_user_code()) {
    loan = {};  // user code runs without what the batch borrowed
  } else if (loan.engine) {
    batch.engine = loan.engine.get();
  } else {
    FLEUVE_ASSIGN(loan, batch.borrow_engine(token_));
    batch.engine = loan.engine.get();
  }
  FLEUVE_ASSIGN(std::unique_ptr<connectors::StagedBatch> staged, sink_->Run(batch));
  loan.lease.reset();
  watermark_.Advance(batch.observer->metrics());
  FLEUVE_TRY(Failpoint("stream.batch.run"));
  if (!state_->stateless()) {
    if (batch_id_.value == 0) {
      // State without offsets would be taken for a used checkpoint.
      FLEUVE_TRY(SyncUnsynced({}, "syncBeforeCommit"));
    }
    FLEUVE_ASSIGN(state::StagedFiles changelogs, state_->Stage(watermark_.current_ms()));
    checkpoint_->AddUnsynced(std::move(changelogs.files), std::move(changelogs.folders));
    FLEUVE_TRY(Failpoint("stream.state.staged"));
  }
  bool already_there = staged->already_there();
  if (already_there && !state_->stateless()) {
    FLEUVE_TRY(SyncUnsynced({}, "syncBeforeCommit"));
  }
  if (!already_there) {
    FLEUVE_TRY(SyncUnsynced(staged->BeforeCommit(), "syncBeforeCommit"));
    FLEUVE_TRY(Failpoint("stream.synced_before_commit"));
    FLEUVE_ASSIGN(const bool held, checkpoint_->lock().StillHeld());
    if (!held) {
      return Error(ErrorKind::kConflict, "CONCURRENT_QUERY",
                   "Another instance of this query was just started by a concurrent session.");
    }
    FLEUVE_ASSIGN(const connectors::CommitOutcome outcome, staged->Commit());
    already_there = outcome == connectors::CommitOutcome::kAlreadyThere;
    FLEUVE_TRY(Failpoint("stream.sink.committed"));
  }
  const connectors::DurableRecords after = staged->AfterCommit();
  if (!after.files.empty() || !after.folders.empty()) {
    FLEUVE_TRY(SyncUnsynced(after, "syncAfterCommit"));
  }
  FLEUVE_TRY(Failpoint("stream.synced_after_commit"));
  if (already_there && !batch_recovered_) {
    return BehindSink(checkpoint_->location().path, sink_->description(), batch_id_.value,
                      "Rows that this batch would add may be missing from the sink or already in it.");
  }
  AddDuration("addBatch", mark_ns);
  if (!already_there || prepared[0] || prepared.size() > 1) {
    input_rows_ = CountInputRows(prepared, *batch.observer, inputs);
  }
  observed_ = batch.observer->metrics();
  // Names of our own are no observe() of the user's.
  std::erase_if(observed_, [](const auto& metrics) { return metrics.name.starts_with("fleuve."); });
  output_rows_ = staged->num_output_rows();
  FLEUVE_TRY(FinishBatch());
  staged->Finish();
  return {};
}

Result<void> MicroBatchQuery::FinishBatch() {
  const std::int64_t mark_ns = Ticks();
  // Offsets and commits of the batch before are durable by now: its sources may clean up.
  if (batch_id_.value > 0) {
    for (auto& state : sources_) {
      if (state.committed) {
        FLEUVE_TRY(state.source->Commit(*state.committed));
      }
    }
  }
  if (!sink_identity_recorded_) {
    FLEUVE_TRY(CheckSinkIdentity());
  }
  if (state_->has_staged()) {
    FLEUVE_TRY(state_->Commit());
  }
  checkpoint::CommitEntry entry;
  entry.next_watermark_ms = watermark_.current_ms();
  FLEUVE_TRY(checkpoint_->WriteCommit(batch_id_, entry));
  FLEUVE_TRY(Failpoint("stream.commits.written"));
  if (batch_id_.value > min_batches_to_retain_) {
    FLEUVE_TRY(checkpoint_->Purge(BatchId(batch_id_.value - min_batches_to_retain_)));
  }
  AddDuration("commitOffsets", mark_ns);
  return {};
}

}  // namespace fleuve::stream
