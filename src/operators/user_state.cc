// Functions of the user over groups with state: the rows of a batch go through the function in the engine, the state it
// asks for lies in the store.

#include <algorithm>

#include "operators/stateful_operator_internal.h"
#include "operators/stopwatch_internal.h"
#include "plan/call_function.h"
#include "plan/event_time.h"
#include "plan/external.h"

namespace fleuve::operators {

namespace {

using plan::Attribute;
using plan::LogicalPlan;
using plan::PlanPtr;

constexpr state::SpaceId kState = 0;
constexpr state::SpaceId kTimers = 1;
constexpr state::SpaceId kExpiry = 2;

/// A list of byte strings: each with its length in four bytes before it.
void AppendPiece(std::string& out, std::string_view piece) {
  const auto size = static_cast<std::uint32_t>(piece.size());
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>((size >> shift) & 0xff));
  }
  out.append(piece);
}

Result<std::vector<std::string_view>> PiecesOf(std::string_view bytes) {
  std::vector<std::string_view> pieces;
  while (!bytes.empty()) {
    std::uint32_t size = 0;
    if (bytes.size() < 4) {
      return Error::Internal("a question about state is cut off");
    }
    for (int i = 0; i < 4; ++i) {
      size |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])) << (8 * i);
    }
    bytes.remove_prefix(4);
    if (bytes.size() < size) {
      return Error::Internal("a question about state is cut off");
    }
    pieces.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return pieces;
}

/// Rows at or below the watermark of the batch before, of a function that waits for event times: such a row would come
/// after the time at which its state might have gone.
class LateRows {
 public:
  /// \param child  what the function reads
  static std::unique_ptr<const LateRows> Of(const PlanPtr& child) {
    const Attribute* time = plan::EventTimeColumn(child->output);
    return time == nullptr ? nullptr : std::unique_ptr<const LateRows>(new LateRows(child, *time));
  }

  /// The child without the rows at or below `micros`; it counts them.
  Result<PlanPtr> LeaveOut(std::int64_t micros, const plan::AnalysisConfig& config) const {
    plan::ExprPtr time = plan::MakeAttribute(time_);
    if (time->type.Is(types::TypeKind::kStruct)) {
      time = plan::MakeGetField(time, 1);  // a window's end
    }
    const types::DataType boolean = types::DataType::Boolean();
    const plan::ExprPtr watermark = plan::MakeLiteral(types::Value(micros), time->type);
    const plan::ExprPtr late = plan::MakeCall("le", {time, watermark}, boolean, true);
    auto counted = std::make_shared<LogicalPlan>();
    counted->kind = plan::PlanKind::kMetrics;
    counted->name = name_;
    counted->output = child_->output;
    counted->children = {child_};
    FLEUVE_ASSIGN(plan::ExprPtr count, plan::CallFunction("count_if", {late}, config));
    counted->exprs = {std::move(count)};
    const plan::ExprPtr not_late = plan::MakeCall("not", {late}, boolean, true);
    const plan::ExprPtr kept =
        plan::MakeCall("coalesce", {not_late, plan::MakeLiteral(types::Value(true), boolean)}, boolean, false);
    return plan::MakeFilter(std::move(counted), kept);
  }

  const std::string& name() const { return name_; }

 private:
  LateRows(PlanPtr child, Attribute time)
      : child_(std::move(child)),
        time_(std::move(time)),
        // A name that progress does not show.
        name_("fleuve.lateRows." + std::to_string(plan::NewAttributeId().value)) {}

  const PlanPtr child_;
  const Attribute time_;
  const std::string name_;
};

/// The store as the running function sees it:
///   begin                            timestamp_ms, watermark_ms (null: none)
///   get      key                     found; value
///   put      key, value              remove   key
///   timer    time, key, value        untimer  time, key
///   due      to                      times; key, value, key, value, ... by time; `space` tells which timers
class StoreQuestions final : public plan::ExternalQuestions {
 public:
  void Bind(OperatorBatch* batch, state::Store* store) {
    batch_ = batch;
    store_ = store;
  }

  Result<Json> Answer(const Json& question, std::string_view bytes, std::string* reply_bytes) override {
    if (store_ == nullptr) {
      return Error::Internal("a function asks for state outside of a batch");
    }
    FLEUVE_ASSIGN(const std::vector<std::string_view> pieces, PiecesOf(bytes));
    const std::string& op = question["op"].AsString();
    const state::SpaceId timers = question["space"].AsString() == "expiry" ? kExpiry : kTimers;
    const std::size_t wanted = op == "put" || op == "timer" ? 2 : op == "begin" || op == "due" ? 0 : 1;
    if (pieces.size() != wanted) {
      return Error::Internal("a question about state has another number of parts: " + op);
    }
    Json::Object answer;
    if (op == "begin") {
      answer.emplace_back("timestamp_ms", batch_->timestamp_micros / 1000);
      answer.emplace_back("watermark_ms", batch_->evict_micros ? Json(*batch_->evict_micros / 1000) : Json(nullptr));
    } else if (op == "get") {
      const std::string_view value = store_->Get(kState, pieces[0]);
      answer.emplace_back("found", value.data() != nullptr);
      reply_bytes->assign(value);
    } else if (op == "put") {
      store_->Put(kState, pieces[0], pieces[1]);
      ++batch_->counts->rows_updated;
    } else if (op == "remove") {
      if (store_->Remove(kState, pieces[0])) {
        ++batch_->counts->rows_removed;
      }
    } else if (op == "timer" || op == "untimer") {
      std::string key;
      state::AppendTime(key, question["time"].AsInt());
      key.append(pieces[0]);
      if (op == "timer") {
        store_->Put(timers, key, pieces[1]);
      } else {
        store_->Remove(timers, key);
      }
    } else if (op == "due") {
      Json::Array times;
      store_->Range(timers, INT64_MIN, question["to"].AsInt(), [&](std::string_view key, std::string_view value) {
        times.emplace_back(state::TimeOf(key));
        AppendPiece(*reply_bytes, key.substr(8));
        AppendPiece(*reply_bytes, value);
        return true;
      });
      answer.emplace_back("times", std::move(times));
    } else {
      return Error::Internal("an unknown question about state: " + op);
    }
    return Json(std::move(answer));
  }

 private:
  OperatorBatch* batch_ = nullptr;
  state::Store* store_ = nullptr;
};

class UserState final : public StatefulOperator {
 public:
  UserState(const LogicalPlan& node, const OperatorContext& context)
      : is_processor_(!node.external->state_type), questions_(std::make_shared<StoreQuestions>()) {
    auto op = std::make_shared<plan::ExternalOperator>(*node.external);
    op->questions = questions_;
    timeout_ = op->timeout;
    value_schema_ = op->state_type ? op->state_type->SimpleString() : "variables";
    std::vector<Attribute> keys;
    for (const plan::ExprPtr& key : node.grouping) {
      keys.push_back(key->attribute);
    }
    key_schema_ = TypesText(keys);
    auto input = std::make_shared<LogicalPlan>(node);
    input->external = std::move(op);
    if (by_event_time()) {
      late_rows_ = LateRows::Of(input->children[0]);
    }
    config_ = context.config;
    inputs_ = {std::move(input)};
    const auto provider = context.config.conf ? context.config.conf("spark.sql.streaming.stateStore.providerClass")
                                              : std::optional<std::string>();
    has_families_ = provider && provider->find("RocksDB") != std::string::npos;
  }

  std::string name() const override {
    return is_processor_ ? "transformWithStateInPandasExec" : "applyInPandasWithState";
  }
  std::vector<state::SpaceSpec> spaces() const override {
    state::SpaceSpec values;
    values.name = "default";
    values.key_schema = key_schema_;
    values.value_schema = value_schema_;
    state::SpaceSpec timers;
    timers.name = "timers";
    timers.timed = true;
    timers.key_schema = key_schema_;
    timers.value_schema = "key";
    state::SpaceSpec expiry = timers;
    expiry.name = "expiry";
    return {std::move(values), std::move(timers), std::move(expiry)};
  }
  const std::vector<PlanPtr>& inputs() const override { return inputs_; }
  const std::vector<Attribute>& output() const override { return inputs_[0]->output; }

  Result<std::shared_ptr<const plan::RowScan>> Run(OperatorBatch& batch, state::Store& store) override {
    if (is_processor_ && !has_families_) {
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.STATE_STORE_MULTIPLE_COLUMN_FAMILIES",
                   "The feature is not supported: Creating multiple column families with HDFSBackedStateStoreProvider "
                   "is not supported.")
          .With("stateStoreProvider", "HDFSBackedStateStoreProvider");
    }
    const Stopwatch watch(&batch.counts->all_updates_ns);
    questions_->Bind(&batch, &store);
    auto rows = RunBound(batch);
    questions_->Bind(nullptr, nullptr);
    return rows;
  }

  bool NeedsBatch(std::optional<std::int64_t> used, std::optional<std::int64_t> next) const override {
    if (by_event_time()) {
      return used && next && *next > *used;
    }
    return timeout_.starts_with("Processing") || timeout_.starts_with("processing");
  }

 private:
  bool by_event_time() const { return timeout_.starts_with("Event") || timeout_.starts_with("event"); }

  Result<std::shared_ptr<const plan::RowScan>> RunBound(OperatorBatch& batch) const {
    auto out = std::make_shared<plan::RowScan>();
    PlanPtr input = inputs_[0];
    const bool drops_late = late_rows_ != nullptr && batch.late_micros.has_value();
    if (drops_late) {
      auto timely = std::make_shared<LogicalPlan>(*input);
      FLEUVE_ASSIGN(timely->children[0], late_rows_->LeaveOut(*batch.late_micros, config_));
      input = std::move(timely);
    }
    FLEUVE_ASSIGN(auto reader, batch.ReadPlan(input));
    for (;;) {
      FLEUVE_ASSIGN(auto next, reader->Next());
      if (!next) {
        break;
      }
      out->batches.push_back(*std::move(next));
    }
    if (drops_late) {
      batch.counts->rows_dropped_by_watermark += batch.Observed(late_rows_->name());
    }
    return std::shared_ptr<const plan::RowScan>(std::move(out));
  }

  const bool is_processor_;
  const std::shared_ptr<StoreQuestions> questions_;
  std::string timeout_;
  std::string key_schema_;
  std::string value_schema_;
  bool has_families_ = false;
  plan::AnalysisConfig config_;
  /// Null: no row is late.
  std::unique_ptr<const LateRows> late_rows_;
  std::vector<PlanPtr> inputs_;
};

}  // namespace

Result<OperatorPtr> MakeUserState(const LogicalPlan& node, const OperatorContext& context) {
  return OperatorPtr(std::make_unique<UserState>(node, context));
}

}  // namespace fleuve::operators
