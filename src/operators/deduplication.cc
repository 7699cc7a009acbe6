// dropDuplicates: a row whose key the state has, or that stood before in the batch, is left out.

#include <algorithm>

#include "operators/row_codec_internal.h"
#include "operators/stateful_operator_internal.h"
#include "operators/stopwatch_internal.h"
#include "plan/event_time.h"

namespace fleuve::operators {

namespace {

using columnar::RecordBatch;
using plan::Attribute;
using plan::LogicalPlan;
using plan::PlanPtr;

class Deduplication final : public StatefulOperator {
 public:
  static Result<OperatorPtr> Make(const LogicalPlan& node, const OperatorContext& context);

  std::string name() const override { return within_ ? "dedupeWithinWatermark" : "dedupe"; }
  std::vector<state::SpaceSpec> spaces() const override {
    state::SpaceSpec keys;
    keys.name = "default";
    keys.timed = timed();
    // A key that is kept for a time has the end of it as its value.
    keys.timed_by_value = within_;
    keys.key_schema = TypesText(keys_);
    keys.value_schema = within_ ? "struct<bigint>" : "struct<>";
    keys.key_columns = ColumnsText(keys_);
    Attribute value;
    value.name = within_ ? "expiresAtMicros" : "__dummy__";
    value.type = within_ ? types::DataType::Long() : types::DataType::Void();
    keys.value_columns = ColumnsText({value});
    return {std::move(keys)};
  }
  const std::vector<PlanPtr>& inputs() const override { return inputs_; }
  const std::vector<Attribute>& output() const override { return output_; }
  PlanPtr Above(const PlanPtr& leaf) const override {
    return GiveOutput(plan::MakeFilter(leaf, plan::MakeAttribute(output_.back())), output_, node_output_);
  }
  Result<std::shared_ptr<const plan::RowScan>> Run(OperatorBatch& batch, state::Store& store) override;
  bool NeedsBatch(std::optional<std::int64_t> used, std::optional<std::int64_t> next) const override {
    return used && next && *next > *used;
  }

 private:
  bool timed() const { return event_key_ && !within_; }
  void Evict(std::int64_t watermark, OperatorBatch& batch, state::Store& store) const;

  bool within_ = false;
  std::int64_t delay_micros_ = 0;
  std::vector<Attribute> keys_;
  /// Positions in the input.
  std::optional<std::size_t> event_time_;
  std::optional<std::size_t> event_key_;
  std::vector<PlanPtr> inputs_;
  std::vector<Attribute> node_output_;
  /// The input's columns, then whether the row stays.
  std::vector<Attribute> output_;
  std::shared_ptr<const types::Schema> output_schema_;
  std::unique_ptr<RowEncoder> encoder_;
};

Result<OperatorPtr> Deduplication::Make(const LogicalPlan& node, const OperatorContext& context) {
  auto made = std::make_unique<Deduplication>();
  made->within_ = node.within_watermark;
  made->node_output_ = node.output;
  std::set<std::int64_t> needed = context.needed;
  const auto is_key = [&node](const Attribute& attribute) {
    return node.keys.empty() ? !attribute.hidden
                             : std::find(node.keys.begin(), node.keys.end(), attribute.id) != node.keys.end();
  };
  const Attribute* event_time = plan::EventTimeColumn(node.output);
  for (const Attribute& attribute : node.output) {
    if (is_key(attribute) || (event_time != nullptr && attribute.id == event_time->id)) {
      needed.insert(attribute.id.value);
    }
  }
  made->inputs_ = {NeededColumns(node.children[0], needed)};
  const std::vector<Attribute>& columns = made->inputs_[0]->output;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto original = std::find_if(node.output.begin(), node.output.end(),
                                       [&](const Attribute& attribute) { return attribute.id == columns[i].id; });
    if (original == node.output.end()) {
      continue;
    }
    const bool has_time = event_time != nullptr && columns[i].id == event_time->id;
    if (has_time) {
      made->event_time_ = i;
      made->delay_micros_ = plan::WatermarkDelayMs(*event_time).value_or(0) * 1000;
    }
    if (is_key(*original)) {
      positions.push_back(i);
      made->keys_.push_back(columns[i]);
      if (has_time) {
        made->event_key_ = i;
      }
    }
  }
  if (made->within_ && !made->event_time_) {
    return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_3102",
                 "dropDuplicatesWithinWatermark is not supported on streaming DataFrames/DataSets without watermark;")
        .Family(ErrorFamily::kAnalysis);
  }
  made->output_ = columns;
  Attribute stays = NewColumn("stays", types::DataType::Boolean());
  stays.nullable = false;
  made->output_.push_back(std::move(stays));
  made->output_schema_ = SchemaFor(made->output_);
  made->encoder_ = std::make_unique<RowEncoder>(*made->output_schema_, std::move(positions), true);
  return OperatorPtr(std::move(made));
}

Result<std::shared_ptr<const plan::RowScan>> Deduplication::Run(OperatorBatch& batch, state::Store& store) {
  auto out = std::make_shared<plan::RowScan>();
  std::int64_t duplicates = 0;
  FLEUVE_ASSIGN(auto reader, batch.Read(0));
  state::ByteRows keys;
  state::ByteRows values;
  std::vector<std::size_t> places;
  std::vector<bool> added;
  for (;;) {
    FLEUVE_ASSIGN(const auto next, reader->Next());
    if (!next) {
      break;
    }
    FLEUVE_TRY(batch.CheckCancelled());
    const Stopwatch watch(&batch.counts->all_updates_ns);
    const auto rows = static_cast<std::size_t>(next->row_count());
    std::vector<std::int64_t> times;
    if (event_time_) {
      times = EventTimesOf(*next, *event_time_);
    }
    keys.Clear();
    values.Clear();
    places.clear();
    for (std::size_t row = 0; row < rows; ++row) {
      if (!times.empty() && batch.late_micros && times[row] != kNoTime && times[row] <= *batch.late_micros) {
        ++batch.counts->rows_dropped_by_watermark;
        continue;
      }
      if (timed()) {
        state::AppendTime(keys.bytes(), times[row] == kNoTime ? INT64_MAX : times[row]);
      }
      encoder_->EncodeRow(*next, static_cast<std::int64_t>(row), &keys.bytes());
      keys.EndRow();
      if (within_) {
        // A row without a time is kept for ever, as its key would be in Spark.
        state::AppendTime(values.bytes(), times[row] == kNoTime ? INT64_MAX : times[row] + delay_micros_);
      }
      values.EndRow();
      places.push_back(row);
    }
    store.AddMany(0, keys, values, &added);
    std::vector<bool> stays(rows, false);
    std::int64_t kept = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (added[i]) {
        stays[places[i]] = true;
        ++kept;
      }
    }
    batch.counts->rows_updated += kept;
    duplicates += static_cast<std::int64_t>(places.size()) - kept;
    if (kept > 0) {
      out->batches.push_back(WithBooleans(*next, stays, output_schema_));
    }
  }
  if (batch.evict_micros) {
    Evict(*batch.evict_micros, batch, store);
  }
  batch.counts->custom["numDroppedDuplicateRows"] = duplicates;
  return std::shared_ptr<const plan::RowScan>(std::move(out));
}

void Deduplication::Evict(std::int64_t watermark, OperatorBatch& batch, state::Store& store) const {
  if (!timed() && !within_) {
    return;
  }
  const Stopwatch watch(&batch.counts->all_removals_ns);
  state::ByteRows gone;
  store.Range(0, INT64_MIN, watermark, [&](std::string_view key, std::string_view) {
    gone.Add(key);
    return true;
  });
  store.RemoveMany(0, gone);
  batch.counts->rows_removed += static_cast<std::int64_t>(gone.size());
}

}  // namespace

Result<OperatorPtr> MakeDeduplication(const LogicalPlan& node, const OperatorContext& context) {
  return Deduplication::Make(node, context);
}

}  // namespace fleuve::operators
