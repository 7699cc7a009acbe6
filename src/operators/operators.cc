#include "operators/operators.h"

#include <algorithm>

#include "base/failpoint.h"
#include "operators/cut_internal.h"
#include "operators/stateful_operator_internal.h"
#include "operators/stopwatch_internal.h"
#include "plan/analyzer.h"
#include "plan/streaming_check.h"

namespace fleuve::operators {

using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;

/// One operator with its store and what it did last.
struct StatefulQuery::Cut {
  OperatorPtr op;
  /// Its number in Spark's order: the folder of its state.
  int id = 0;
  std::unique_ptr<state::Store> store;
  OperatorCounts counts;
  StateOperatorProgress progress;
  std::int64_t commit_ns = 0;
};

namespace {

using Watermark = std::optional<std::int64_t>;

/// The watermark that a fragment's root gives: the query's where a withWatermark stands in it, the operator's where its
/// rows come from one, the smallest of several.
Watermark WatermarkOf(const PlanPtr& fragment, std::int64_t query_micros, const std::vector<Watermark>& outputs) {
  Watermark smallest;
  std::vector<const LogicalPlan*> pending = {fragment.get()};
  while (!pending.empty()) {
    const LogicalPlan& node = *pending.back();
    pending.pop_back();
    Watermark here;
    if (const int number = OperatorOfLeaf(node); number >= 0) {
      here = outputs[static_cast<std::size_t>(number)];
    } else if (node.kind == PlanKind::kWatermark && node.is_streaming) {
      here = query_micros;
    } else {
      for (const PlanPtr& child : node.children) {
        pending.push_back(child.get());
      }
    }
    if (here) {
      smallest = smallest ? std::min(*smallest, *here) : *here;
    }
  }
  return smallest;
}

/// The fragment with the operators' rows in the places of their leaves.
PlanPtr WithRows(const PlanPtr& fragment, const std::vector<std::shared_ptr<const plan::RowScan>>& rows) {
  return plan::RewritePlan(fragment, [&](const PlanPtr& node) -> PlanPtr {
    const int number = OperatorOfLeaf(*node);
    if (number < 0) {
      return nullptr;
    }
    auto copy = std::make_shared<LogicalPlan>(*node);
    copy->is_streaming = false;
    copy->rows = rows[static_cast<std::size_t>(number)];
    return copy;
  });
}

class BatchOfOperator final : public OperatorBatch {
 public:
  BatchOfOperator(const BatchRun& run, const StatefulOperator& op, state::Store& store,
                  const std::vector<std::shared_ptr<const plan::RowScan>>& rows)
      : run_(run), op_(op), store_(store), rows_(rows) {}

  Result<std::unique_ptr<columnar::BatchReader>> Read(std::size_t input) override {
    return ReadPlan(op_.inputs()[input]);
  }

  Result<std::unique_ptr<columnar::BatchReader>> ReadPlan(const PlanPtr& plan) override {
    FLEUVE_ASSIGN(PlanPtr bound, run_.bind(plan));
    FLEUVE_ASSIGN(const PlanPtr prepared, plan::Prepare(WithRows(bound, rows_), run_.config));
    if (run_.on_prepared) {
      run_.on_prepared(prepared);
    }
    engine::ExecuteOptions options = Options();
    options.observer = run_.observer;
    return run_.engine->Execute(prepared, options);
  }

  std::int64_t Observed(const std::string& name) const override {
    std::int64_t value = 0;
    if (run_.observer != nullptr) {
      for (const engine::ObservedMetrics& metrics : run_.observer->metrics()) {
        if (metrics.name == name && metrics.row.size() == 1 && !metrics.row[0].is_null()) {
          value = metrics.row[0].integer();
        }
      }
    }
    return value;
  }

  Result<std::vector<columnar::RecordBatch>> Query(const PlanPtr& plan) override {
    FLEUVE_ASSIGN(const PlanPtr prepared, plan::Prepare(plan, run_.config));
    FLEUVE_ASSIGN(auto reader, run_.engine->Execute(prepared, Options()));
    return engine::ReadAll(*reader);
  }

  Result<void> CheckCancelled() const override {
    FLEUVE_TRY(store_.CheckMemory());
    return run_.token ? run_.token->Check() : Result<void>();
  }

 private:
  engine::ExecuteOptions Options() const {
    engine::ExecuteOptions options;
    options.token = run_.token;
    return options;
  }

  const BatchRun& run_;
  const StatefulOperator& op_;
  state::Store& store_;
  const std::vector<std::shared_ptr<const plan::RowScan>>& rows_;
};

std::string OperatorList(const std::vector<std::pair<int, std::string>>& operators) {
  std::string text = "[";
  for (std::size_t i = 0; i < operators.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::string("(OperatorId: ") + std::to_string(operators[i].first) +
            " -> OperatorName: " + operators[i].second + ")";
  }
  return text + "]";
}

std::int64_t Millis(std::int64_t nanos) { return nanos / 1000000; }

}  // namespace

Json StateOperatorProgress::ToJson(bool idle) const {
  Json custom{Json::Object{}};
  for (const auto& [key, value] : custom_metrics) {
    custom.Set(key, value);
  }
  Json json;
  json.Set("operatorName", operator_name)
      .Set("numRowsTotal", rows_total)
      .Set("numRowsUpdated", idle ? 0 : rows_updated)
      .Set("allUpdatesTimeMs", all_updates_ms)
      .Set("numRowsRemoved", rows_removed)
      .Set("allRemovalsTimeMs", all_removals_ms)
      .Set("commitTimeMs", commit_ms)
      .Set("memoryUsedBytes", memory_used_bytes)
      .Set("numRowsDroppedByWatermark", idle ? 0 : rows_dropped_by_watermark)
      .Set("numShufflePartitions", shuffle_partitions)
      .Set("numStateStoreInstances", store_instances)
      .Set("customMetrics", std::move(custom));
  return json;
}

StatefulQuery::StatefulQuery(StatefulOptions options) : options_(std::move(options)) {}
StatefulQuery::~StatefulQuery() = default;

Result<std::unique_ptr<StatefulQuery>> StatefulQuery::Make(const PlanPtr& plan, StatefulOptions options) {
  FLEUVE_ASSIGN(const PlanPtr pushed, plan::PushStreamingFilters(plan));
  FLEUVE_ASSIGN(CutPlan cut, CutAtState(pushed, options));
  const std::vector<std::size_t> order = SparkOrder(cut);
  std::unique_ptr<StatefulQuery> query(new StatefulQuery(std::move(options)));
  query->top_ = cut.top;
  if (query->options_.memory_limit_bytes > 0) {
    query->budget_ = std::make_shared<state::MemoryBudget>();
    query->budget_->limit_bytes = query->options_.memory_limit_bytes;
    query->budget_->stores = std::max<std::int64_t>(1, static_cast<std::int64_t>(cut.operators.size()));
  }
  for (std::size_t i = 0; i < cut.operators.size(); ++i) {
    auto one = std::make_unique<Cut>();
    one->op = std::move(cut.operators[i]);
    one->id = static_cast<int>(std::find(order.begin(), order.end(), i) - order.begin());
    query->operators_.push_back(std::move(one));
  }
  return query;
}

Result<void> StatefulQuery::Open(BatchId next, const std::string& state_ids) {
  const storage::Location state_folder{options_.checkpoint.store, options_.checkpoint.path + "/state"};
  if (next.value > 0) {
    FLEUVE_ASSIGN(const auto found, state::FindOperators(state_folder));
    std::vector<std::pair<int, std::string>> before;
    for (const auto& one : found) {
      before.emplace_back(one.id, one.name);
    }
    std::vector<std::pair<int, std::string>> now;
    for (const auto& cut : operators_) {
      now.emplace_back(cut->id, cut->op->name());
    }
    std::sort(now.begin(), now.end());
    // A checkpoint without state fails where the state is opened, as Spark's does.
    if (before != now && !before.empty()) {
      return Error(ErrorKind::kInvalidArgument, "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
                   "Streaming stateful operator name does not match with the operator in state metadata. This likely "
                   "to happen when user adds/removes/changes stateful operator of existing streaming query.\nStateful "
                   "operators in the metadata: " +
                       OperatorList(before) + "; Stateful operators in current batch: " + OperatorList(now) + ".")
          .With("OpsInMetadataSeq", OperatorList(before))
          .With("OpsInCurBatchSeq", OperatorList(now));
    }
  }
  if (stateless()) {
    open_ = true;
    return {};
  }
  Json ids;
  if (!state_ids.empty()) {
    FLEUVE_ASSIGN(ids, Json::Parse(state_ids));
  }
  const bool schema_check =
      !options_.config.conf ||
      options_.config.conf("spark.sql.streaming.stateStore.stateSchemaCheck").value_or("true") != "false";
  for (const auto& cut : operators_) {
    state::StoreSpec spec;
    spec.folder = {state_folder.store, state_folder.path + "/" + std::to_string(cut->id)};
    spec.operator_id = cut->id;
    spec.operator_name = cut->op->name();
    spec.partitions = options_.partitions;
    spec.spaces = cut->op->spaces();
    spec.versions_to_retain = options_.versions_to_retain;
    spec.budget = budget_;
    spec.spill_folder = options_.spill_folder;
    state::Version version;
    version.number = next.value;
    // {"0":[["<attempt>"]]}: partitions of stores; ours have one of each.
    const Json::Array& partitions = ids[std::to_string(cut->id)].items();
    if (next.value > 0 && !partitions.empty() && !partitions.front().items().empty()) {
      version.attempt = partitions.front().items().front().AsString();
    }
    FLEUVE_ASSIGN(cut->store, state::Store::Open(spec, version, schema_check));
  }
  open_ = true;
  return {};
}

std::vector<Watermark> StatefulQuery::Propagate(std::int64_t watermark_ms) const {
  // Outputs of operators; what reaches each is returned.
  std::vector<Watermark> outputs;
  std::vector<Watermark> reaching;
  for (const auto& cut : operators_) {
    Watermark smallest;
    for (const PlanPtr& input : cut->op->inputs()) {
      const Watermark one = WatermarkOf(input, watermark_ms * 1000, outputs);
      if (one) {
        smallest = smallest ? std::min(*smallest, *one) : *one;
      }
    }
    reaching.push_back(smallest);
    outputs.push_back(cut->op->OutputWatermark(smallest));
  }
  return reaching;
}

Result<PlanPtr> StatefulQuery::Run(const BatchRun& run) {
  attempt_ = run.attempt_id;
  const std::vector<Watermark> late = Propagate(run.late_watermark_ms);
  const std::vector<Watermark> evict = Propagate(run.watermark_ms);
  std::vector<std::shared_ptr<const plan::RowScan>> rows(operators_.size());
  for (std::size_t i = 0; i < operators_.size(); ++i) {
    Cut& cut = *operators_[i];
    cut.counts = OperatorCounts{};
    BatchOfOperator batch(run, *cut.op, *cut.store, rows);
    batch.late_micros = late[i];
    batch.evict_micros = evict[i];
    batch.timestamp_micros = run.timestamp_ms * 1000;
    batch.counts = &cut.counts;
    FLEUVE_TRY(Failpoint("operators.run"));
    FLEUVE_ASSIGN(rows[i], cut.op->Run(batch, *cut.store));
    FLEUVE_TRY(cut.store->CheckMemory());
    StateOperatorProgress& progress = cut.progress;
    progress.operator_name = cut.op->name();
    progress.rows_total = cut.op->rows_total(*cut.store);
    progress.rows_updated = cut.counts.rows_updated;
    progress.all_updates_ms = Millis(cut.counts.all_updates_ns);
    progress.rows_removed = cut.counts.rows_removed;
    progress.all_removals_ms = Millis(cut.counts.all_removals_ns);
    progress.rows_dropped_by_watermark = cut.counts.rows_dropped_by_watermark;
    progress.shuffle_partitions = options_.partitions;
    progress.store_instances =
        (cut.op->single_partition() ? 1 : options_.partitions) * cut.op->instances_per_partition();
    progress.custom_metrics = cut.counts.custom;
  }
  last_watermark_ms_ = run.watermark_ms;
  ran_ = true;
  FLEUVE_ASSIGN(const PlanPtr bound, run.bind(top_));
  return stateless() ? bound : WithRows(bound, rows);
}

Result<state::StagedFiles> StatefulQuery::Stage(std::int64_t next_watermark_ms) {
  state::StagedFiles staged;
  Json ids;
  for (const auto& cut : operators_) {
    cut->commit_ns = 0;
    const Stopwatch watch(&cut->commit_ns);
    FLEUVE_ASSIGN(state::StagedFiles files, cut->store->Stage(attempt_, next_watermark_ms));
    staged.files.insert(staged.files.end(), files.files.begin(), files.files.end());
    staged.folders.insert(staged.folders.end(), files.folders.begin(), files.folders.end());
    ids.Set(std::to_string(cut->id), Json::Array{Json(Json::Array{Json(attempt_)})});
  }
  commit_ids_ = operators_.empty() ? "" : ids.Dump();
  has_staged_ = !operators_.empty();
  return staged;
}

Result<void> StatefulQuery::Commit() {
  has_staged_ = false;
  for (const auto& cut : operators_) {
    {
      const Stopwatch watch(&cut->commit_ns);
      FLEUVE_TRY(cut->store->Apply());
    }
    cut->progress.commit_ms = Millis(cut->commit_ns);
    const state::StoreMetrics metrics = cut->store->metrics();
    cut->progress.memory_used_bytes = metrics.memory_bytes;
    cut->progress.custom_metrics["fleuveChangelogBytes"] = metrics.changelog_bytes;
  }
  return {};
}

Result<void> StatefulQuery::Abort() {
  has_staged_ = false;
  for (const auto& cut : operators_) {
    if (cut->store) {
      FLEUVE_TRY(cut->store->Discard());
    }
  }
  return {};
}

std::string StatefulQuery::CommitIds() const { return commit_ids_; }

Result<std::optional<std::int64_t>> StatefulQuery::Adopt(BatchId batch, const std::string& attempt) {
  std::optional<std::int64_t> watermark;
  Json ids;
  for (const auto& cut : operators_) {
    const storage::Location folder{options_.checkpoint.store,
                                   options_.checkpoint.path + "/state/" + std::to_string(cut->id)};
    FLEUVE_ASSIGN(const auto header, state::FindChangelog(folder, state::Version{batch.value + 1, attempt}));
    if (!header) {
      return std::optional<std::int64_t>();
    }
    watermark = header->next_watermark_ms;
    ids.Set(std::to_string(cut->id), Json::Array{Json(Json::Array{Json(header->version.attempt)})});
  }
  const std::string text = ids.Dump();
  FLEUVE_TRY(Open(batch.Next(), text));
  commit_ids_ = text;
  return watermark;
}

bool StatefulQuery::NeedsBatch(std::int64_t next_watermark_ms) const {
  if (!ran_) {
    return false;
  }
  const std::vector<Watermark> used = Propagate(last_watermark_ms_);
  const std::vector<Watermark> next = Propagate(next_watermark_ms);
  for (std::size_t i = 0; i < operators_.size(); ++i) {
    if (operators_[i]->op->NeedsBatch(used[i], next[i])) {
      return true;
    }
  }
  return false;
}

std::vector<StateOperatorProgress> StatefulQuery::Progress() const {
  std::vector<StateOperatorProgress> progress;
  if (!ran_) {
    return progress;
  }
  progress.resize(operators_.size());
  for (const auto& cut : operators_) {
    progress[static_cast<std::size_t>(cut->id)] = cut->progress;
  }
  return progress;
}

bool KeepsState(const PlanPtr& plan, const std::string& output_mode) {
  bool stateful = false;
  plan::VisitPlan(plan, [&](const LogicalPlan& node) { stateful = stateful || IsStateful(node, output_mode); });
  return stateful;
}

}  // namespace fleuve::operators
