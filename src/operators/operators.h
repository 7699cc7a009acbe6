#pragma once

/// \file
/// Stateful operators of a streaming query: the only place that cuts a streaming plan.
///
/// `StatefulQuery::Make` cuts the plan at every node that keeps state (aggregation, deduplication, limit, join of two
/// streams, sessions): below each cut stands a stateless fragment, above it a leaf that holds what the operator gives.
/// A batch runs the fragments from the leaves up, each through the engine into its operator, and gives back the topmost
/// fragment, which the sink runs as it would run a stateless batch.
///
/// The loop's order for batch N (docs/adr, stream/loop.cc):
///
///   Open (once, before the first batch)
///   Run        state of N-1 is read and changed in place; the plan of the rest comes back
///   sink Run   ...
///   Stage      changelog N is written; its files are synced with W1, before the sink's commit
///   sink Commit, W2
///   Commit     the state of N counts; commits/N is written
///
/// Where anything fails between Run and Commit, the loop drops the object and begins anew with Open; `Abort` goes back
/// to the state of N-1 without that.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"
#include "engine/engine.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"
#include "state/store.h"
#include "storage/object_store.h"

namespace fleuve::operators {

/// What a query with state is made for.
struct StatefulOptions {
  /// The checkpoint; state lies in its folder `state`.
  storage::Location checkpoint;
  /// append, update, complete.
  std::string output_mode = "append";
  plan::AnalysisConfig config;
  /// `spark.sql.shuffle.partitions` as pinned in the offsets: reported, never used.
  std::int64_t partitions = 200;
  std::int64_t versions_to_retain = 100;
  /// What all states of the query may take of memory together; 0: no limit.
  std::int64_t memory_limit_bytes = 0;
  /// Where rows of the state lie that find no room in it; empty: then the query fails.
  std::string spill_folder{};
};

/// One batch.
struct BatchRun {
  /// As in the sink's commit and in the changelogs.
  std::string attempt_id;
  /// The watermark of the batch before (what is late) and of this one (what is evicted).
  std::int64_t late_watermark_ms = 0;
  std::int64_t watermark_ms = 0;
  std::int64_t timestamp_ms = 0;
  engine::Engine* engine = nullptr;
  plan::AnalysisConfig config;
  CancellationTokenPtr token;
  /// Counts the leaves and observe() nodes of every fragment. May be null.
  std::shared_ptr<engine::RunObserver> observer;
  /// Puts what the batch holds in the place of the streaming leaves of a fragment (stream::MakeBatchPlan).
  std::function<Result<plan::PlanPtr>(const plan::PlanPtr& fragment)> bind;
  /// Told of each fragment that runs inside `Run`, prepared. May be null.
  std::function<void(const plan::PlanPtr& prepared)> on_prepared;
};

/// One entry of progress' `stateOperators`.
struct StateOperatorProgress {
  std::string operator_name;
  std::int64_t rows_total = 0;
  std::int64_t rows_updated = 0;
  std::int64_t all_updates_ms = 0;
  std::int64_t rows_removed = 0;
  std::int64_t all_removals_ms = 0;
  std::int64_t commit_ms = 0;
  std::int64_t memory_used_bytes = 0;
  std::int64_t rows_dropped_by_watermark = 0;
  std::int64_t shuffle_partitions = 0;
  std::int64_t store_instances = 0;
  std::map<std::string, std::int64_t> custom_metrics;

  /// The eleven keys and customMetrics, as progress has them. \param idle  what an idle trigger repeats: updated and
  /// dropped rows are 0.
  Json ToJson(bool idle) const;
};

class StatefulOperator;

/// The stateful side of one query. Threads: the query's loop thread.
class StatefulQuery {
 public:
  /// Cuts `plan` (the analyzed streaming plan, checked by plan::CheckStreaming). kUnsupported names what has no
  /// operator here. A plan without stateful nodes gives an object whose `stateless()` is true; its other methods do
  /// nothing, but `Open`, which refuses a checkpoint that has state.
  static Result<std::unique_ptr<StatefulQuery>> Make(const plan::PlanPtr& plan, StatefulOptions options);
  ~StatefulQuery();

  bool stateless() const { return operators_.empty(); }
  /// Opens the state that batch `next` starts from: that of batch next-1 as `state_ids` (commits/<next-1>) names it.
  /// Compares operators with the checkpoint's. STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA, the errors of
  /// `state::Store::Open`.
  Result<void> Open(BatchId next, const std::string& state_ids);
  bool is_open() const { return open_; }

  /// Runs the fragments below the topmost one and their operators. Gives the topmost one, bound, not prepared.
  Result<plan::PlanPtr> Run(const BatchRun& run);
  /// Writes the changelogs of the batch. \param next_watermark_ms  the watermark that the batch ends with.
  Result<state::StagedFiles> Stage(std::int64_t next_watermark_ms);
  /// The staged state counts.
  Result<void> Commit();
  bool has_staged() const { return has_staged_; }
  /// Gives up what the batch changed.
  Result<void> Abort();
  /// The states of the batch last staged or adopted, in the form of `stateUniqueIds` (JSON text); empty where
  /// stateless.
  std::string CommitIds() const;

  /// The sink holds batch `batch` of attempt `attempt` (empty: it does not tell) and commits/N is missing: takes that
  /// attempt's changelogs over without a run. (They are durable before the sink's commit, and a later attempt removes
  /// those of an earlier one: where only one attempt is there, it is the sink's.) Gives the watermark that the batch
  /// ended with; nullopt where they are not all there.
  Result<std::optional<std::int64_t>> Adopt(BatchId batch, const std::string& attempt);

  /// True where an operator wants another batch although no row is new, were its watermark `next_watermark_ms`. False
  /// before the first batch of this run.
  bool NeedsBatch(std::int64_t next_watermark_ms) const;

  /// One entry per operator, of the last batch; as long as none ran, empty.
  std::vector<StateOperatorProgress> Progress() const;

 private:
  struct Cut;
  StatefulQuery(StatefulOptions options);
  /// The watermarks that reach each operator when the query's is `watermark_ms`.
  std::vector<std::optional<std::int64_t>> Propagate(std::int64_t watermark_ms) const;

  StatefulOptions options_;
  /// In the order in which they run: an operator's inputs come before it. The position is the operator's number.
  std::vector<std::unique_ptr<Cut>> operators_;
  plan::PlanPtr top_;
  std::shared_ptr<state::MemoryBudget> budget_;
  bool open_ = false;
  bool ran_ = false;
  bool has_staged_ = false;
  std::int64_t last_watermark_ms_ = 0;
  std::string attempt_;
  std::string commit_ids_;
};

/// True where the plan has a node that keeps state. Offsets then pin `stateStore.providerClass` to
/// `state::kProviderClass`.
bool KeepsState(const plan::PlanPtr& plan, const std::string& output_mode);

}  // namespace fleuve::operators
