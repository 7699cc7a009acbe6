#pragma once

/// \file
/// What every stateful operator implements, and what it is given. One file per operator; `cut.cc` makes them.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "columnar/record_batch.h"
#include "operators/operators.h"
#include "plan/logical_plan.h"
#include "state/store.h"

namespace fleuve::operators {

/// What an operator is made with.
struct OperatorContext {
  /// Attributes that anything in the whole query's plan reads: an operator that passes rows on need not keep others.
  /// (Which column carries a watermark, its metadata tells: plan/event_time.h.)
  std::set<std::int64_t> needed;
  std::string output_mode;
  plan::AnalysisConfig config;
};

/// What an operator counts in one batch. The framework zeroes it before each.
struct OperatorCounts {
  std::int64_t rows_updated = 0;
  std::int64_t rows_removed = 0;
  std::int64_t rows_dropped_by_watermark = 0;
  std::int64_t all_updates_ns = 0;
  std::int64_t all_removals_ns = 0;
  /// Keys as progress shows them.
  std::map<std::string, std::int64_t> custom;
};

/// One batch as an operator sees it.
class OperatorBatch {
 public:
  virtual ~OperatorBatch() = default;
  /// The watermarks that reach this operator, in microseconds; nullopt: no watermark below it. Rows whose event time is
  /// at or below `late` are late; state whose time is at or below `evict` goes.
  std::optional<std::int64_t> late_micros;
  std::optional<std::int64_t> evict_micros;
  /// current_timestamp of the batch.
  std::int64_t timestamp_micros = 0;
  OperatorCounts* counts = nullptr;

  /// Runs input i (`StatefulOperator::inputs`), once: its visible columns in the order of the plan's output.
  virtual Result<std::unique_ptr<columnar::BatchReader>> Read(std::size_t input) = 0;
  /// As `Read`, of a plan that stands in the place of an input for this batch.
  virtual Result<std::unique_ptr<columnar::BatchReader>> ReadPlan(const plan::PlanPtr& plan) = 0;
  /// What the kMetrics node `name` (one BIGINT) of a plan that was read to its end computed.
  virtual std::int64_t Observed(const std::string& name) const = 0;
  /// Runs a plan of the operator's own over rows it has (kRows leaves), to the end.
  virtual Result<std::vector<columnar::RecordBatch>> Query(const plan::PlanPtr& plan) = 0;
  /// Asked once per piece of rows: whether the run shall end, or its state has outgrown its memory.
  virtual Result<void> CheckCancelled() const = 0;
};

/// One operator of one query. Threads: the query's loop thread.
class StatefulOperator {
 public:
  virtual ~StatefulOperator() = default;
  /// Spark's name: stateStoreSave, dedupe, dedupeWithinWatermark, globalLimit, symmetricHashJoin,
  /// sessionWindowStateStoreSaveExec.
  virtual std::string name() const = 0;
  /// The kinds of rows it keeps.
  virtual std::vector<state::SpaceSpec> spaces() const = 0;
  /// What it reads: streaming fragments without stateful nodes, with nodes of the operator's own on top where the
  /// engine shall work before it (partial aggregates).
  virtual const std::vector<plan::PlanPtr>& inputs() const = 0;
  /// What it gives: columns of the rows of `Run`.
  virtual const std::vector<plan::Attribute>& output() const = 0;
  /// The plan in the place of the node: `leaf` gives the rows of `Run` with `output()`; the plan gives the node's own
  /// output.
  virtual plan::PlanPtr Above(const plan::PlanPtr& leaf) const { return leaf; }

  /// Reads its inputs, changes `store`, gives its rows.
  virtual Result<std::shared_ptr<const plan::RowScan>> Run(OperatorBatch& batch, state::Store& store) = 0;

  /// The watermark of its output where `input` (the smallest of its inputs' watermarks, microseconds) reaches it.
  virtual std::optional<std::int64_t> OutputWatermark(std::optional<std::int64_t> input) const { return input; }
  /// Whether a batch without rows has something to do: `used` is the eviction watermark of the last batch, `next` the
  /// one it would have.
  virtual bool NeedsBatch(std::optional<std::int64_t> used, std::optional<std::int64_t> next) const = 0;
  /// numRowsTotal; numStateStoreInstances per partition; whether one partition is all it uses.
  virtual std::int64_t rows_total(const state::Store& store) const { return store.row_count(0); }
  virtual std::int64_t instances_per_partition() const { return 1; }
  virtual bool single_partition() const { return false; }
};

using OperatorPtr = std::unique_ptr<StatefulOperator>;

/// The operators, each in a file of its own. `node` is the stateful node with its (already cut) children.
Result<OperatorPtr> MakeAggregation(const plan::LogicalPlan& node, const OperatorContext& context);  // aggregation.cc
Result<OperatorPtr> MakeSessionWindow(const plan::LogicalPlan& node,
                                      const OperatorContext& context);  // session_window.cc
Result<OperatorPtr> MakeDeduplication(const plan::LogicalPlan& node,
                                      const OperatorContext& context);  // deduplication.cc
Result<OperatorPtr> MakeUserState(const plan::LogicalPlan& node, const OperatorContext& context);
Result<OperatorPtr> MakeGlobalLimit(const plan::LogicalPlan& node, const OperatorContext& context);  // global_limit.cc
Result<OperatorPtr> MakeStreamJoin(const plan::LogicalPlan& node, const OperatorContext& context);   // stream_join.cc

/// The columns of `columns` as an operator's own: visible, so that a run gives them.
std::vector<plan::Attribute> Visible(std::vector<plan::Attribute> columns);
/// A new column, as an operator adds them to what it reads and gives.
plan::Attribute NewColumn(std::string name, types::DataType type);
/// The columns as expressions.
std::vector<plan::ExprPtr> ColumnsOf(const std::vector<plan::Attribute>& attributes);
/// Their schema.
std::shared_ptr<const types::Schema> SchemaFor(const std::vector<plan::Attribute>& columns);
/// A projection of `from` to `wanted`, the output of the node in whose place an operator stands: columns that nobody
/// needs are not in `available` any more and are NULL.
plan::PlanPtr GiveOutput(const plan::PlanPtr& from, const std::vector<plan::Attribute>& available,
                         const std::vector<plan::Attribute>& wanted);
/// A projection of `child` to those of its columns that are needed, visible.
plan::PlanPtr NeededColumns(const plan::PlanPtr& child, const std::set<std::int64_t>& needed);
/// A leaf over rows that are already there.
plan::PlanPtr RowsPlan(std::vector<plan::Attribute> output, std::vector<columnar::RecordBatch> batches);
/// `struct<bigint,string>`: types without names, as schemas of spaces are compared.
std::string TypesText(const std::vector<plan::Attribute>& columns);

/// The columns as schema JSON, for readers of the state.
std::string ColumnsText(const std::vector<plan::Attribute>& columns);

/// True where the node keeps state in a query of this output mode (and is streaming).
bool IsStateful(const plan::LogicalPlan& node, const std::string& output_mode);

}  // namespace fleuve::operators
