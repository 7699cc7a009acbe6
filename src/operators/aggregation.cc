// Aggregation: partial rows by key, late ones left out, merged with the states that the store has of their keys.

#include <algorithm>

#include "operators/aggregate_states_internal.h"
#include "operators/row_codec_internal.h"
#include "operators/row_merge_internal.h"
#include "operators/stateful_operator_internal.h"
#include "operators/stopwatch_internal.h"
#include "plan/event_time.h"

namespace fleuve::operators {

namespace {

using columnar::RecordBatch;
using plan::Attribute;
using plan::ExprPtr;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;

/// Rows that are merged with their states at a time.
constexpr std::int64_t kChunkRows = 1 << 16;

std::vector<std::size_t> Positions(std::size_t from, std::size_t to) {
  std::vector<std::size_t> out;
  for (std::size_t i = from; i < to; ++i) {
    out.push_back(i);
  }
  return out;
}

class Aggregation final : public StatefulOperator {
 public:
  static Result<OperatorPtr> Make(const LogicalPlan& node, const OperatorContext& context);

  std::string name() const override { return "stateStoreSave"; }
  std::vector<state::SpaceSpec> spaces() const override {
    state::SpaceSpec space;
    space.name = "default";
    space.timed = timed();
    space.key_schema = TypesText(keys_);
    space.value_schema = TypesText(states_.columns);
    space.value_note = states_.note;
    space.key_columns = ColumnsText(keys_);
    space.value_columns = ColumnsText(states_.columns);
    return {std::move(space)};
  }
  const std::vector<PlanPtr>& inputs() const override { return inputs_; }
  const std::vector<Attribute>& output() const override { return output_; }
  PlanPtr Above(const PlanPtr& leaf) const override {
    if (states_.row_finals.size() != states_.finals.size()) {
      return AggregateNode(leaf, ColumnsOf(keys_), states_.finals, node_output_);
    }
    std::vector<ExprPtr> exprs = ColumnsOf(keys_);
    exprs.insert(exprs.end(), states_.row_finals.begin(), states_.row_finals.end());
    return plan::MakeProject(leaf, std::move(exprs), node_output_);
  }
  Result<std::shared_ptr<const plan::RowScan>> Run(OperatorBatch& batch, state::Store& store) override;
  bool NeedsBatch(std::optional<std::int64_t> used, std::optional<std::int64_t> next) const override {
    return mode_ != "complete" && used && next && *next > *used;
  }
  bool single_partition() const override { return keys_.empty(); }

 private:
  /// True where state goes by the watermark: keys begin with their time.
  bool timed() const { return event_key_.has_value(); }
  std::string_view KeyPart(std::string_view key) const { return timed() ? key.substr(8) : key; }
  /// Of rows of the store, without the time in front of their keys.
  RowDecoder Decoder() const { return RowDecoder(schema_, {keys_.size(), states_.columns.size()}); }
  /// The times of the event-time key, never-ending for NULL; empty where untimed.
  std::vector<std::int64_t> TimesOf(const RecordBatch& rows) const;
  /// `rows` without those whose time is at or below `late`.
  Result<RecordBatch> WithoutLate(const RecordBatch& rows, std::int64_t late, OperatorCounts& counts) const;
  /// Merges partial rows with their states and puts the result; adds it to `merged` where that is wanted.
  Result<void> Merge(std::vector<RecordBatch> rows, OperatorBatch& batch, state::Store& store,
                     std::vector<RecordBatch>* merged);
  /// The same without the engine, where states can be folded as bytes. False: a sum leaves its range; nothing was put.
  Result<bool> MergeBytes(const std::vector<RecordBatch>& rows, const state::ByteRows& keys,
                          const std::vector<std::string_view>& values, OperatorBatch& batch, state::Store& store,
                          std::vector<RecordBatch>* merged) const;
  Result<void> Evict(std::int64_t watermark, OperatorBatch& batch, state::Store& store,
                     std::vector<RecordBatch>* evicted);

  std::string mode_;
  AggregateStates states_;
  std::vector<Attribute> keys_;
  /// Position of the key with the event time.
  std::optional<std::size_t> event_key_;
  std::vector<PlanPtr> inputs_;
  std::vector<Attribute> output_;
  std::vector<Attribute> node_output_;
  /// Keys and merged states of one merging run.
  std::vector<Attribute> merged_output_;
  std::shared_ptr<const types::Schema> schema_;
  std::unique_ptr<RowEncoder> key_encoder_;
  std::unique_ptr<RowEncoder> value_encoder_;
  std::optional<RowMerger> merger_;
};

Result<OperatorPtr> Aggregation::Make(const LogicalPlan& node, const OperatorContext& context) {
  auto made = std::make_unique<Aggregation>();
  made->mode_ = context.output_mode;
  FLEUVE_ASSIGN(made->states_, DescribeAggregates(node));
  made->merger_ = RowMerger::For(made->states_);
  const std::size_t key_count = node.grouping.size();
  made->node_output_ = node.output;
  made->keys_ = Visible({node.output.begin(), node.output.begin() + static_cast<std::ptrdiff_t>(key_count)});
  for (std::size_t i = 0; i < key_count; ++i) {
    if (plan::WatermarkDelayMs(made->keys_[i])) {
      made->event_key_ = i;
      break;
    }
  }
  made->output_ = made->keys_;
  made->output_.insert(made->output_.end(), made->states_.columns.begin(), made->states_.columns.end());
  made->inputs_ = {AggregateNode(node.children[0], node.grouping, made->states_.partial, made->output_)};
  made->merged_output_ = Renewed(made->output_);
  made->schema_ = std::make_shared<types::Schema>(plan::SchemaOf(*made->inputs_[0]));
  made->key_encoder_ = std::make_unique<RowEncoder>(*made->schema_, Positions(0, key_count), true);
  made->value_encoder_ =
      std::make_unique<RowEncoder>(*made->schema_, Positions(key_count, made->output_.size()), false);
  return OperatorPtr(std::move(made));
}

std::vector<std::int64_t> Aggregation::TimesOf(const RecordBatch& rows) const {
  if (!timed()) {
    return {};
  }
  std::vector<std::int64_t> times = EventTimesOf(rows, *event_key_);
  std::replace(times.begin(), times.end(), kNoTime, std::int64_t{INT64_MAX});
  return times;
}

Result<RecordBatch> Aggregation::WithoutLate(const RecordBatch& rows, std::int64_t late, OperatorCounts& counts) const {
  const std::vector<std::int64_t> times = TimesOf(rows);
  const auto dropped = std::count_if(times.begin(), times.end(), [late](std::int64_t time) { return time <= late; });
  if (dropped == 0) {
    return rows;
  }
  counts.rows_dropped_by_watermark += dropped;
  RowDecoder kept = Decoder();
  std::string key;
  std::string value;
  for (std::int64_t row = 0; row < rows.row_count(); ++row) {
    if (times[static_cast<std::size_t>(row)] <= late) {
      continue;
    }
    key.clear();
    value.clear();
    key_encoder_->EncodeRow(rows, row, &key);
    value_encoder_->EncodeRow(rows, row, &value);
    FLEUVE_TRY(kept.Add({key, value}));
  }
  return kept.Finish();
}

Result<void> Aggregation::Merge(std::vector<RecordBatch> rows, OperatorBatch& batch, state::Store& store,
                                std::vector<RecordBatch>* merged) {
  FLEUVE_TRY(batch.CheckCancelled());
  state::ByteRows keys;
  std::vector<std::string_view> values;
  {
    const Stopwatch watch(&batch.counts->all_updates_ns);
    for (const RecordBatch& part : rows) {
      const std::vector<std::int64_t> times = TimesOf(part);
      key_encoder_->Encode(part, timed() ? &times : nullptr, &keys);
    }
    store.GetMany(0, keys, &values);
  }
  if (merger_) {
    FLEUVE_ASSIGN(const bool done, MergeBytes(rows, keys, values, batch, store, merged));
    if (done) {
      return {};
    }
  }
  // States that are there come first: the order counts for first, last and lists.
  std::vector<RecordBatch> known;
  BatchedRows known_rows(Decoder(), &known);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].data() != nullptr && !known_rows.Add({KeyPart(keys[i]), values[i]})) {
      break;
    }
  }
  FLEUVE_TRY(known_rows.Finish());
  if (!known.empty()) {
    rows.insert(rows.begin(), known.begin(), known.end());
    const PlanPtr leaf = RowsPlan(output_, std::move(rows));
    FLEUVE_ASSIGN(rows, batch.Query(AggregateNode(leaf, ColumnsOf(keys_), states_.merge, merged_output_)));
  }
  const Stopwatch watch(&batch.counts->all_updates_ns);
  state::ByteRows state_rows;
  for (RecordBatch& part : rows) {
    keys.Clear();
    state_rows.Clear();
    const std::vector<std::int64_t> times = TimesOf(part);
    key_encoder_->Encode(part, timed() ? &times : nullptr, &keys);
    value_encoder_->Encode(part, nullptr, &state_rows);
    store.PutMany(0, keys, state_rows);
    batch.counts->rows_updated += part.row_count();
    if (merged != nullptr) {
      merged->push_back(std::move(part));
    }
  }
  return {};
}

Result<bool> Aggregation::MergeBytes(const std::vector<RecordBatch>& rows, const state::ByteRows& keys,
                                     const std::vector<std::string_view>& values, OperatorBatch& batch,
                                     state::Store& store, std::vector<RecordBatch>* merged) const {
  const Stopwatch watch(&batch.counts->all_updates_ns);
  state::ByteRows folded;
  std::string newer;
  std::size_t i = 0;
  for (const RecordBatch& part : rows) {
    for (std::int64_t row = 0; row < part.row_count(); ++row, ++i) {
      if (values[i].data() == nullptr) {
        value_encoder_->EncodeRow(part, row, &folded.bytes());
      } else {
        newer.clear();
        value_encoder_->EncodeRow(part, row, &newer);
        if (!merger_->Merge(values[i], newer, &folded.bytes())) {
          return false;
        }
      }
      folded.EndRow();
    }
  }
  store.PutMany(0, keys, folded);
  batch.counts->rows_updated += static_cast<std::int64_t>(keys.size());
  if (merged != nullptr) {
    BatchedRows updated(Decoder(), merged);
    for (i = 0; i < keys.size() && updated.Add({KeyPart(keys[i]), folded[i]}); ++i) {
    }
    FLEUVE_TRY(updated.Finish());
  }
  return true;
}

Result<void> Aggregation::Evict(std::int64_t watermark, OperatorBatch& batch, state::Store& store,
                                std::vector<RecordBatch>* evicted) {
  const Stopwatch watch(&batch.counts->all_removals_ns);
  state::ByteRows gone;
  BatchedRows rows(Decoder(), evicted);
  store.Range(0, INT64_MIN, watermark, [&](std::string_view key, std::string_view value) {
    gone.Add(key);
    return evicted == nullptr || rows.Add({KeyPart(key), value});
  });
  FLEUVE_TRY(rows.Finish());
  store.RemoveMany(0, gone);
  batch.counts->rows_removed += static_cast<std::int64_t>(gone.size());
  return {};
}

Result<std::shared_ptr<const plan::RowScan>> Aggregation::Run(OperatorBatch& batch, state::Store& store) {
  auto out = std::make_shared<plan::RowScan>();
  std::vector<RecordBatch>* updated = mode_ == "update" ? &out->batches : nullptr;
  const bool drops_late = mode_ != "complete" && timed() && batch.late_micros.has_value();
  FLEUVE_ASSIGN(auto reader, batch.Read(0));
  std::vector<RecordBatch> chunk;
  std::int64_t chunk_rows = 0;
  for (;;) {
    FLEUVE_ASSIGN(auto next, reader->Next());
    if (next && drops_late) {
      FLEUVE_ASSIGN(*next, WithoutLate(*next, *batch.late_micros, *batch.counts));
    }
    if (next && next->row_count() > 0) {
      chunk_rows += next->row_count();
      chunk.push_back(*std::move(next));
      if (chunk_rows < kChunkRows) {
        continue;
      }
    } else if (next) {
      continue;
    }
    if (chunk_rows > 0) {
      FLEUVE_TRY(Merge(std::exchange(chunk, {}), batch, store, updated));
      chunk_rows = 0;
    }
    if (!next) {
      break;
    }
  }
  reader.reset();
  if (mode_ == "complete") {
    BatchedRows rows(Decoder(), &out->batches);
    store.Scan(0, [&](std::string_view key, std::string_view value) { return rows.Add({KeyPart(key), value}); });
    FLEUVE_TRY(rows.Finish());
  } else if (timed() && batch.evict_micros) {
    FLEUVE_TRY(Evict(*batch.evict_micros, batch, store, mode_ == "append" ? &out->batches : nullptr));
  }
  return std::shared_ptr<const plan::RowScan>(std::move(out));
}

}  // namespace

Result<OperatorPtr> MakeAggregation(const LogicalPlan& node, const OperatorContext& context) {
  return Aggregation::Make(node, context);
}

}  // namespace fleuve::operators
