#pragma once

/// \file
/// The micro-batch loop of one query.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/resource_lease.h"
#include "checkpoint/checkpoint.h"
#include "connectors/sink.h"
#include "connectors/source.h"
#include "engine/engine.h"
#include "operators/operators.h"
#include "stream/engine_pool.h"
#include "stream/manager.h"
#include "stream/progress_internal.h"
#include "stream/query.h"
#include "stream/watermark.h"

namespace fleuve::stream {

/// What the loop needs of its manager.
struct LoopHost {
  ManagerOptions options;
  std::shared_ptr<EnginePool> engines;
  /// Posts an event to the session's listeners; from any thread.
  std::function<void(EventKind kind, const std::string& session_key, std::string json)> post;
  /// The query has ended (its thread is about to end).
  std::function<void(const QueryPtr& query)> ended;
};

/// Everything a query owns. The loop thread owns the private members of the second half; the rest is guarded by mutex_.
class MicroBatchQuery final : public Query, public std::enable_shared_from_this<MicroBatchQuery> {
 public:
  struct Parts {
    QueryRequest request;
    std::shared_ptr<LoopHost> host;
    std::unique_ptr<checkpoint::Checkpoint> checkpoint;
    std::unique_ptr<connectors::Sink> sink;
    std::string run_id;
    /// True: nothing is synced, the folder is removed at the end.
    bool temporary_checkpoint = false;
  };

  explicit MicroBatchQuery(Parts parts);
  ~MicroBatchQuery() override;

  /// Starts the loop's thread. Once.
  void Begin();
  const std::string& checkpoint_path() const { return checkpoint_path_; }
  /// Ends the query after the batch in flight.
  void RequestGracefulStop();
  /// Waits until the loop has ended; false when `deadline_ms` (of the monotonic clock, from now) has passed.
  bool WaitEnded(std::int64_t timeout_ms);
  std::int64_t ended_at_ms() const;

  const std::string& id() const override { return id_; }
  const std::string& run_id() const override { return run_id_; }
  const std::optional<std::string>& name() const override { return request_.name; }
  const std::string& session_key() const override { return request_.session_key; }
  QueryStatus status() const override;
  std::vector<std::string> RecentProgress() const override;
  std::optional<std::string> LastProgress() const override;
  std::optional<QueryFailure> failure() const override;
  std::string Explain(bool extended) const override;
  const std::string& started_event() const override { return started_event_; }
  Result<void> Stop() override;
  Result<bool> AwaitTermination(std::optional<std::int64_t> timeout_ms, const CancellationTokenPtr& token) override;
  Result<void> ProcessAllAvailable(const CancellationTokenPtr& token) override;

 private:
  struct SourceState {
    std::shared_ptr<const plan::StreamRelation> relation;
    std::unique_ptr<connectors::Source> source;
    /// Where a new query begins.
    std::optional<connectors::Offset> initial;
    /// End of the last batch.
    std::optional<connectors::Offset> committed;
    /// End of the batch planned or running.
    std::optional<connectors::Offset> planned;
    bool has_listener = false;
    const std::optional<connectors::Offset>& start() const { return committed ? committed : initial; }
  };

  void Loop();
  Result<void> RunQuery();
  /// The same; std::bad_alloc ends the query, not the process.
  Result<void> RunGuarded();
  Result<void> Initialize();
  Result<void> Recover();
  Result<void> FillMissingCommits(const checkpoint::Recovered& recovered);
  Result<void> FollowSink();
  Result<void> CheckSinkIdentity();
  Result<void> RunTriggers();
  /// Waits for the next trigger; false: the query shall end.
  Result<bool> WaitForNextTrigger(std::int64_t trigger_start_ms, bool ran);
  Result<bool> RunTrigger();
  Result<bool> PlanBatch();
  /// Writes offsets/N for the planned ends of the sources.
  Result<void> WriteOffsets();
  /// True where state wants a batch although no row is new.
  bool StateNeedsBatch() const;
  /// Makes the stateful side with the settings that the checkpoint pins.
  Result<void> MakeState(const checkpoint::Recovered& recovered);
  /// Opens the state that the batch starts from, before the first batch of this run. True where the sink holds the
  /// batch already and its state was taken over: it does not run.
  Result<std::optional<connectors::DurableRecords>> OpenState();
  Result<void> RunBatch();
  Result<void> FinishBatch();
  Result<void> SyncUnsynced(const connectors::DurableRecords& sink_records, const char* duration_key);
  void RecordProgress(bool ran, std::int64_t trigger_start_ns);
  void AppendProgress(Progress progress);
  std::string OffsetsText(bool planned) const;
  void SetStatus(std::string message);
  void SetStatus(std::string message, bool is_data_available, bool is_trigger_active);
  void Fail(Error error);
  void Cleanup(bool failed);
  void AddDuration(const char* key, std::int64_t start_ns);
  std::int64_t Now() const { return host_->options.clock->NowMillis(); }
  std::int64_t Ticks() const { return host_->options.clock->MonotonicNanos(); }
  std::string Conf(const std::string& key, const std::string& fallback) const;
  std::int64_t ConfInt(const std::string& key, std::int64_t fallback) const;
  bool ConfBool(const std::string& key, bool fallback) const;
  std::vector<std::pair<std::string, std::string>> PinnedConf(
      const std::vector<std::pair<std::string, std::string>>& found) const;
  bool stopping() const;
  std::string PrettyId() const;

  const QueryRequest request_;
  const std::shared_ptr<LoopHost> host_;
  const std::string id_;
  const std::string run_id_;
  const std::string checkpoint_path_;
  std::string started_event_;
  CancellationTokenPtr token_ = std::make_shared<CancellationToken>();
  std::thread thread_;

  mutable std::mutex mutex_;
  /// Wakes the loop: data, a stop, somebody who waits for all data.
  std::condition_variable wake_;
  /// Wakes those who wait for the query.
  mutable std::condition_variable changed_;
  bool woken_ = false;
  bool stop_requested_ = false;
  bool graceful_stop_ = false;
  bool ended_ = false;
  std::int64_t ended_at_ms_ = 0;
  std::string status_message_ = "Initializing StreamExecution";
  bool is_data_available_ = false;
  bool is_trigger_active_ = false;
  std::deque<Progress> progress_;
  std::optional<QueryFailure> failure_;
  /// Triggers begun, and the newest one that found nothing new.
  std::int64_t triggers_begun_ = 0;
  std::int64_t last_idle_trigger_ = 0;
  plan::PlanPtr last_plan_;

  // The loop's own.
  std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
  std::unique_ptr<connectors::Sink> sink_;
  std::vector<SourceState> sources_;
  const bool temporary_checkpoint_;
  bool sync_ = true;
  bool initialized_ = false;
  bool sources_prepared_ = false;
  BatchId batch_id_;
  bool batch_planned_ = false;
  /// The planned batch was found in `offsets` at start.
  bool batch_recovered_ = false;
  WatermarkTracker watermark_;
  /// The watermark of the batch planned or running, and that of the batch before it: what is evicted, what is late.
  std::int64_t batch_watermark_ms_ = 0;
  std::int64_t late_watermark_ms_ = 0;
  /// False for a batch that only the state asked for.
  bool batch_has_new_data_ = false;
  bool no_data_batches_ = true;
  std::unique_ptr<operators::StatefulQuery> state_;
  /// `stateUniqueIds` of the newest commit entry; empty in the version that Spark and this engine write.
  std::string committed_state_ids_;
  bool plan_checked_ = false;
  std::int64_t batch_timestamp_ms_ = 0;
  std::int64_t last_batch_timestamp_ms_ = 0;
  std::vector<std::pair<std::string, std::string>> pinned_conf_;
  int offsets_version_ = 1;
  std::string offsets_source_info_;
  bool sink_identity_recorded_ = false;
  /// The newest batch that the sink held when this run began to plan.
  std::int64_t sink_newest_ = -1;
  bool sink_followed_ = false;
  std::int64_t min_batches_to_retain_ = 100;
  std::int64_t progress_limit_ = 100;
  std::int64_t idle_interval_ms_ = 10000;

  // Of one trigger.
  std::map<std::string, std::int64_t> durations_;
  std::int64_t trigger_start_ms_ = 0;
  std::optional<std::int64_t> previous_trigger_start_ms_;
  bool look_again_ = false;
  std::optional<std::int64_t> look_again_ms_;
  std::vector<std::int64_t> input_rows_;
  std::int64_t output_rows_ = -1;
  std::vector<engine::ObservedMetrics> observed_;
  std::optional<std::int64_t> last_idle_progress_ms_;
  std::int64_t poll_ms_ = 0;
};

/// The text of an error as it stands in STREAM_FAILED and in the status: `[CONDITION] message SQLSTATE: ...`; Delta's
/// errors without the SQLSTATE, errors without a condition as their message.
std::string CauseText(const Error& error);

}  // namespace fleuve::stream
