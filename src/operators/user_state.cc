// Functions of the user over groups with state: the rows of a batch go through the function in the engine, the state it
// asks for lies in the store.

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "operators/row_codec_internal.h"
#include "operators/stateful_operator_internal.h"
#include "operators/stopwatch_internal.h"
#include "operators/user_state_internal.h"
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
/// What the function's side keeps for itself: which timers and map entries a group has. Not counted in progress.
constexpr state::SpaceId kIndex = 3;

/// What progress shows of a stateful processor, also where it is 0.
constexpr std::array kProcessorMetrics = {"numRegisteredTimers",
                                          "numDeletedTimers",
                                          "numExpiredTimers",
                                          "numValueStateVars",
                                          "numListStateVars",
                                          "numMapStateVars",
                                          "numValueStateWithTTLVars",
                                          "numListStateWithTTLVars",
                                          "numMapStateWithTTLVars",
                                          "numDeletedStateVars",
                                          "numValuesRemovedDueToTTLExpiry"};

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
    return time == nullptr ? nullptr : std::unique_ptr<const LateRows>(new LateRows(*time));
  }

  /// `child`, which gives the columns of the one it was made of, without the rows at or below `micros`; it counts them.
  Result<PlanPtr> LeaveOut(const PlanPtr& child, std::int64_t micros, const plan::AnalysisConfig& config) const {
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
    counted->output = child->output;
    counted->children = {child};
    FLEUVE_ASSIGN(plan::ExprPtr count, plan::CallFunction("count_if", {late}, config));
    counted->exprs = {std::move(count)};
    const plan::ExprPtr not_late = plan::MakeCall("not", {late}, boolean, true);
    const plan::ExprPtr kept =
        plan::MakeCall("coalesce", {not_late, plan::MakeLiteral(types::Value(true), boolean)}, boolean, false);
    return plan::MakeFilter(std::move(counted), kept);
  }

  const std::string& name() const { return name_; }

 private:
  explicit LateRows(Attribute time)
      : time_(std::move(time)),
        // A name that progress does not show.
        name_("fleuve.lateRows." + std::to_string(plan::NewAttributeId().value)) {}

  const Attribute time_;
  const std::string name_;
};

/// A schema as the user wrote it (DDL, or the JSON of a type), in the form that is compared: types without names.
Result<std::string> ComparedSchema(const std::string& text) {
  if (text.empty()) {
    return std::string();
  }
  types::DataType type = types::DataType::Struct({});
  if (text.front() == '{') {
    FLEUVE_ASSIGN(const Json json, Json::Parse(text));
    FLEUVE_ASSIGN(type, types::DataType::FromJson(json));
  } else {
    FLEUVE_ASSIGN(type, types::DataType::FromDdl(text));
  }
  std::vector<Attribute> columns;
  for (const types::StructField& field : type.fields()) {
    columns.push_back(NewColumn(field.name, field.type));
  }
  return TypesText(columns);
}

/// PySpark's evaluation types of processors that take and give rows (the others: pandas frames).
constexpr int kProcessorRows = 213;
constexpr int kProcessorRowsWithInitialState = 214;

/// A mode as Spark spells it.
std::string ModeName(const std::string& text) {
  for (const char* name : {"None", "ProcessingTime", "EventTime", "Append", "Update", "Complete"}) {
    if (AsciiLower(text) == AsciiLower(name)) {
      return name;
    }
  }
  return text;
}

/// Writes a mode of the processor beside its state; refuses another one than before.
Result<void> KeepMode(const std::string& name, const std::string& value, state::Store& store) {
  const std::string kept(store.Get(kIndex, name));
  if (kept.empty()) {
    store.Put(kIndex, name, value);
  } else if (kept != value) {
    return Error(ErrorKind::kInvalidArgument, "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
                 "Cannot change " + name + " from " + kept + " to " + value + " between restarts. Please set " + name +
                     " to " + kept + ", or restart with a new checkpoint directory.")
        .With("configName", name)
        .With("oldConfig", kept)
        .With("newConfig", value);
  }
  return {};
}

/// Writes what a state variable is beside its values; refuses another variable of the name.
Result<void> KeepVariable(const Json& question, state::Store& store) {
  const std::string& name = question["name"].AsString();
  const std::string& kind = question["kind"].AsString();
  FLEUVE_ASSIGN(const std::string value, ComparedSchema(question["value_schema"].AsString()));
  FLEUVE_ASSIGN(const std::string key, ComparedSchema(question["key_schema"].AsString()));
  const std::string row = std::string(kVariableRow) + name;
  Json json;
  json.Set("kind", kind).Set("value", value).Set("key", key);
  json.Set("position", question["position"].AsInt()).Set("ttl", question["ttl"].AsBool());
  const std::string wanted = json.Dump();
  const std::string kept(store.Get(kIndex, row));
  if (kept == wanted) {
    return {};
  }
  if (!kept.empty()) {
    FLEUVE_ASSIGN(const Json before, Json::Parse(kept));
    const std::string& old_kind = before["kind"].AsString();
    const std::string& old_value = before["value"].AsString();
    const std::string& old_key = before["key"].AsString();
    if (old_kind != kind) {
      return Error(ErrorKind::kInvalidArgument, "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
                   "Cannot change " + name + " to " + kind + " between query restarts. Please set " + name + " to " +
                       old_kind + ", or restart with a new checkpoint directory.")
          .With("stateVarName", name)
          .With("newType", kind)
          .With("oldType", old_kind);
    }
    if (old_key != key || old_value != value) {
      return old_key != key ? state::SchemaNotCompatible(true, old_key, key, ".")
                            : state::SchemaNotCompatible(false, old_value, value, ".");
    }
  }
  store.Put(kIndex, row, wanted);
  return {};
}

/// What a batch after the first reads: of the union of input and initial state the input alone, with the union's
/// columns.
PlanPtr WithoutInitialState(const LogicalPlan& both) {
  const PlanPtr& input = both.children.front();
  return plan::MakeProject(input, ColumnsOf(input->output), both.output);
}

/// The store as the running function sees it. Its questions, with what they bring; what they answer:
/// - begin; timestamp_ms, watermark_ms (null: none)
/// - get key; found, value
/// - put key, value, `updated` (how many values it counts as)
/// - remove key, `always` (counted also where nothing was there, as Spark counts the clearing of state)
/// - timer time, key, value
/// - untimer time, key
/// - due to; times, and key, value, key, value, ... by time
/// - count name, by (a metric of the operator)
/// - variable name, kind, value_schema, key_schema (of maps), position, ttl (refused where the checkpoint has another
///   one of the name)
///
/// `space` tells which rows (state, index) or timers (timers, expiry).
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
    const std::string& named = question["space"].AsString();
    const state::SpaceId rows = named == "index" ? kIndex : kState;
    const state::SpaceId timers = named == "expiry" ? kExpiry : kTimers;
    const std::size_t wanted = op == "put" || op == "timer"                                        ? 2
                               : op == "begin" || op == "due" || op == "count" || op == "variable" ? 0
                                                                                                   : 1;
    if (pieces.size() != wanted) {
      return Error::Internal("a question about state has another number of parts: " + op);
    }
    Json::Object answer;
    if (op == "begin") {
      answer.emplace_back("timestamp_ms", batch_->timestamp_micros / 1000);
      answer.emplace_back("watermark_ms", batch_->evict_micros ? Json(*batch_->evict_micros / 1000) : Json(nullptr));
    } else if (op == "get") {
      const std::string_view value = store_->Get(rows, pieces[0]);
      answer.emplace_back("found", value.data() != nullptr);
      reply_bytes->assign(value);
    } else if (op == "put") {
      store_->Put(rows, pieces[0], pieces[1]);
      if (rows == kState) {
        const Json* updated = question.Find("updated");
        batch_->counts->rows_updated += updated == nullptr ? 1 : updated->AsInt();
      }
    } else if (op == "remove") {
      if ((store_->Remove(rows, pieces[0]) || question["always"].AsBool()) && rows == kState) {
        ++batch_->counts->rows_removed;
      }
    } else if (op == "variable") {
      FLEUVE_TRY(KeepVariable(question, *store_));
    } else if (op == "count") {
      batch_->counts->custom[question["name"].AsString()] += question["by"].AsInt();
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
    timeout_ = is_processor_ ? ModeName(op->timeout) : op->timeout;
    output_mode_ = ModeName(op->output_mode);
    const int eval_type = op->calls.front().chain.back()->eval_type;
    by_rows_ = eval_type == kProcessorRows || eval_type == kProcessorRowsWithInitialState;
    value_schema_ = op->state_type ? op->state_type->SimpleString() : "variables";
    std::vector<Attribute> keys;
    for (const plan::ExprPtr& key : node.grouping) {
      keys.push_back(key->attribute);
    }
    key_schema_ = TypesText(keys);
    auto input = std::make_shared<LogicalPlan>(node);
    if (op->left_arguments > 0) {
      later_ = WithoutInitialState(*node.children.front());
    }
    input->external = std::move(op);
    if (by_event_time()) {
      late_rows_ = LateRows::Of(input->children[0]);
    }
    config_ = context.config;
    inputs_ = {std::move(input)};
    const auto provider =
        context.config.conf ? context.config.conf(state::kProviderClassKey) : std::optional<std::string>();
    has_families_ = provider && *provider == state::kSpillingProviderClass;
  }

  std::string name() const override {
    if (!is_processor_) {
      return "applyInPandasWithState";
    }
    return by_rows_ ? "transformWithStateInPySparkExec" : "transformWithStateInPandasExec";
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
    std::vector<state::SpaceSpec> all = {std::move(values), std::move(timers), std::move(expiry)};
    if (is_processor_) {
      state::SpaceSpec index;
      index.name = kProcessorIndex;
      index.key_schema = key_schema_;
      index.value_schema = "keys";
      all.push_back(std::move(index));
    }
    return all;
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
    if (is_processor_) {
      FLEUVE_TRY(KeepMode("timeMode", timeout_, store));
      FLEUVE_TRY(KeepMode("outputMode", output_mode_, store));
      for (const char* metric : kProcessorMetrics) {
        batch.counts->custom.emplace(metric, 0);
      }
    }
    const Stopwatch watch(&batch.counts->all_updates_ns);
    questions_->Bind(&batch, &store);
    auto rows = RunBound(batch, store.version().number == 0);
    questions_->Bind(nullptr, nullptr);
    return rows;
  }

  bool NeedsBatch(std::optional<std::int64_t> used, std::optional<std::int64_t> next) const override {
    if (timeout_.starts_with("Processing")) {
      return true;
    }
    // A stateful processor sees every watermark, one without timers too.
    return (is_processor_ || by_event_time()) && used && next && *next > *used;
  }

 private:
  bool by_event_time() const { return timeout_.starts_with("Event"); }

  Result<std::shared_ptr<const plan::RowScan>> RunBound(OperatorBatch& batch, bool is_first) const {
    auto out = std::make_shared<plan::RowScan>();
    PlanPtr child = inputs_[0]->children[0];
    if (later_ != nullptr && !is_first) {
      child = later_;
    }
    const bool drops_late = late_rows_ != nullptr && batch.late_micros.has_value();
    if (drops_late) {
      FLEUVE_ASSIGN(child, late_rows_->LeaveOut(child, *batch.late_micros, config_));
    }
    auto input = std::make_shared<LogicalPlan>(*inputs_[0]);
    input->children = {std::move(child)};
    FLEUVE_ASSIGN(auto reader, batch.ReadPlan(input));
    for (;;) {
      FLEUVE_ASSIGN(auto next, reader->Next());
      if (!next) {
        break;
      }
      FLEUVE_TRY(CheckTimes(*next, batch.late_micros));
      out->batches.push_back(*std::move(next));
    }
    if (drops_late) {
      batch.counts->rows_dropped_by_watermark += batch.Observed(late_rows_->name());
    }
    return std::shared_ptr<const plan::RowScan>(std::move(out));
  }

  /// Rows of a processor whose output has an event time must not be older than the watermark: operators above would
  /// drop them.
  Result<void> CheckTimes(const columnar::RecordBatch& rows, std::optional<std::int64_t> watermark) const {
    const Attribute* time = plan::EventTimeColumn(output());
    if (time == nullptr || !watermark) {
      return {};
    }
    for (const std::int64_t at : EventTimesOf(rows, static_cast<std::size_t>(time - output().data()))) {
      if (at != kNoTime && at < *watermark) {
        const std::string emitted = std::to_string(at / 1000);
        const std::string current = std::to_string(*watermark / 1000);
        return Error(ErrorKind::kInvalidArgument, "EMITTING_ROWS_OLDER_THAN_WATERMARK_NOT_ALLOWED",
                     "Previous node emitted a row with eventTime=" + emitted +
                         " which is older than current_watermark_value=" + current +
                         "\nThis can lead to correctness issues in the stateful operators downstream in the execution "
                         "pipeline.\nPlease correct the operator logic to emit rows after current global watermark "
                         "value.")
            .With("emittedRowEventTime", emitted)
            .With("currentWatermark", current);
      }
    }
    return {};
  }

  const bool is_processor_;
  const std::shared_ptr<StoreQuestions> questions_;
  std::string timeout_;
  std::string output_mode_;
  bool by_rows_ = false;
  std::string key_schema_;
  std::string value_schema_;
  bool has_families_ = false;
  plan::AnalysisConfig config_;
  /// Null: no row is late.
  std::unique_ptr<const LateRows> late_rows_;
  /// The child of the batches after the first; null: as the first one's.
  PlanPtr later_;
  std::vector<PlanPtr> inputs_;
};

}  // namespace

Result<OperatorPtr> MakeUserState(const LogicalPlan& node, const OperatorContext& context) {
  return OperatorPtr(std::make_unique<UserState>(node, context));
}

}  // namespace fleuve::operators
