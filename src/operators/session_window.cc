// Sessions: rows of a key whose spans touch are one group. Partial rows of a batch are merged with the sessions that
// the store has of their keys.

#include <algorithm>
#include <map>
#include <unordered_map>

#include "operators/aggregate_states_internal.h"
#include "operators/row_codec_internal.h"
#include "operators/stateful_operator_internal.h"
#include "operators/stopwatch_internal.h"
#include "plan/event_time.h"
#include "state/byte_codec.h"

namespace fleuve::operators {

namespace {

using columnar::RecordBatch;
using plan::Attribute;
using plan::ExprPtr;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;

/// Sessions that are merged together; all of a key are in one such chunk.
constexpr std::int64_t kChunkRows = 1 << 16;

/// `sessions`: key -> its sessions by start, each as start, end, length and states. `times`: end and key of each
/// session.
constexpr state::SpaceId kSessions = 0;
constexpr state::SpaceId kTimes = 1;

struct Session {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::string_view states;
};

void AppendSession(std::string& out, const Session& session) {
  state::AppendRaw(out, session.start);
  state::AppendRaw(out, session.end);
  state::AppendRaw(out, static_cast<std::uint32_t>(session.states.size()));
  out += session.states;
}

Result<std::vector<Session>> SessionsIn(std::string_view text) {
  std::vector<Session> sessions;
  while (!text.empty()) {
    Session session;
    std::uint32_t size = 0;
    if (!state::TakeRaw(text, &session.start) || !state::TakeRaw(text, &session.end) || !state::TakeRaw(text, &size) ||
        text.size() < size) {
      return state::CannotLoad(ErrorKind::kCorrupt, "UNCATEGORIZED", "The sessions of a key are cut off.");
    }
    session.states = text.substr(0, size);
    text.remove_prefix(size);
    sessions.push_back(session);
  }
  return sessions;
}

/// Two timestamps as `RowEncoder` writes a row of them.
std::string TimesPart(std::int64_t start, std::int64_t end) {
  std::string out(1, '\0');
  state::AppendRaw(out, start);
  state::AppendRaw(out, end);
  return out;
}

std::string EndKey(std::int64_t end, std::string_view key) {
  std::string out;
  state::AppendTime(out, end);
  out += key;
  return out;
}

class SessionWindow final : public StatefulOperator {
 public:
  static Result<OperatorPtr> Make(const LogicalPlan& node, const OperatorContext& context);

  std::string name() const override { return "sessionWindowStateStoreSaveExec"; }
  std::vector<state::SpaceSpec> spaces() const override {
    state::SpaceSpec sessions;
    sessions.name = "default";
    sessions.key_schema = TypesText(keys_);
    sessions.value_schema = TypesText(states_.columns);
    sessions.value_note = states_.note;
    state::SpaceSpec times;
    times.name = "times";
    times.timed = true;
    times.key_schema = sessions.key_schema;
    times.value_schema = "struct<>";
    return {std::move(sessions), std::move(times)};
  }
  const std::vector<PlanPtr>& inputs() const override { return inputs_; }
  const std::vector<Attribute>& output() const override { return output_; }
  PlanPtr Above(const PlanPtr& leaf) const override;
  Result<std::shared_ptr<const plan::RowScan>> Run(OperatorBatch& batch, state::Store& store) override;
  bool NeedsBatch(std::optional<std::int64_t> used, std::optional<std::int64_t> next) const override {
    return mode_ != "complete" && used && next && *next > *used;
  }
  std::int64_t rows_total(const state::Store& store) const override { return store.row_count(kTimes); }

 private:
  /// New partial rows by key.
  using ByKey = std::map<std::string, std::vector<std::pair<std::int64_t, std::pair<std::int64_t, std::string>>>>;
  /// Rows on their way to be merged: each under the session that it belongs to.
  struct Chunk {
    explicit Chunk(RowDecoder decoder) : rows(std::move(decoder), &batches) {}
    std::vector<RecordBatch> batches;
    BatchedRows rows;
    std::int64_t row_count = 0;
    bool merges = false;
    std::vector<std::string> keys;
  };
  Result<ByKey> ReadRows(OperatorBatch& batch) const;
  /// The key's old and new rows under their merged sessions.
  Result<void> AddKey(const std::string& key,
                      std::vector<std::pair<std::int64_t, std::pair<std::int64_t, std::string>>>& rows,
                      const state::Store& store, Chunk& chunk) const;
  Result<void> Flush(Chunk& chunk, OperatorBatch& batch, state::Store& store) const;
  Result<void> Put(const std::string& key, const std::vector<Session>& sessions, OperatorBatch& batch,
                   state::Store& store) const;
  Result<void> Evict(std::int64_t watermark, OperatorBatch& batch, state::Store& store,
                     std::vector<RecordBatch>* evicted) const;
  Result<void> GiveAll(const state::Store& store, std::vector<RecordBatch>* out) const;
  RowDecoder Decoder() const { return RowDecoder(schema_, {keys_.size(), 2, states_.columns.size()}); }

  std::string mode_;
  AggregateStates states_;
  /// The grouping columns but the session.
  std::vector<Attribute> keys_;
  /// The session's place in the grouping.
  std::size_t session_at_ = 0;
  /// True where the session carries a watermark.
  bool timed_ = false;
  Attribute start_;
  Attribute end_;
  std::vector<Attribute> node_grouping_;
  std::vector<Attribute> node_output_;
  std::vector<PlanPtr> inputs_;
  /// Keys, start, end, states.
  std::vector<Attribute> output_;
  std::vector<Attribute> merged_output_;
  std::shared_ptr<const types::Schema> schema_;
  std::unique_ptr<RowEncoder> key_encoder_;
  std::unique_ptr<RowEncoder> value_encoder_;
};

Result<OperatorPtr> SessionWindow::Make(const LogicalPlan& node, const OperatorContext& context) {
  auto made = std::make_unique<SessionWindow>();
  made->mode_ = context.output_mode;
  FLEUVE_ASSIGN(made->states_, DescribeAggregates(node));
  const std::size_t grouping = node.grouping.size();
  made->node_output_ = node.output;
  made->node_grouping_ = Visible({node.output.begin(), node.output.begin() + static_cast<std::ptrdiff_t>(grouping)});
  bool found = false;
  std::vector<Attribute> keys;
  std::vector<ExprPtr> key_exprs;
  for (std::size_t i = 0; i < grouping; ++i) {
    if (!found && plan::IsSessionWindow(node.grouping[i])) {
      found = true;
      made->session_at_ = i;
    } else {
      key_exprs.push_back(node.grouping[i]);
      keys.push_back(made->node_grouping_[i]);
    }
  }
  if (!found) {
    return Error::Internal("an aggregation without a session is no session window");
  }
  const ExprPtr& session = node.grouping[made->session_at_];
  const types::DataType time = session->type.fields()[0].type;
  made->timed_ = plan::CarriesWatermark(session);
  made->keys_ = std::move(keys);
  made->start_ = NewColumn("session_start", time);
  made->end_ = NewColumn("session_end", time);
  // Rows without a session (no time, no positive gap) belong to none.
  Attribute row_session = NewColumn("session_row", session->type);
  std::vector<ExprPtr> exprs = ColumnsOf(node.children[0]->output);
  std::vector<Attribute> columns = node.children[0]->output;
  exprs.push_back(session);
  columns.push_back(row_session);
  PlanPtr below = plan::MakeProject(node.children[0], std::move(exprs), std::move(columns));
  const ExprPtr of_row = plan::MakeAttribute(row_session);
  below = plan::MakeFilter(below, plan::MakeCall("isnotnull", {of_row}, types::DataType::Boolean(), false));
  key_exprs.push_back(plan::MakeGetField(of_row, 0));
  key_exprs.push_back(plan::MakeGetField(of_row, 1));
  made->output_ = made->keys_;
  made->output_.push_back(made->start_);
  made->output_.push_back(made->end_);
  made->output_.insert(made->output_.end(), made->states_.columns.begin(), made->states_.columns.end());
  made->inputs_ = {AggregateNode(below, std::move(key_exprs), made->states_.partial, made->output_)};
  made->merged_output_ = Renewed(made->output_);
  made->schema_ = std::make_shared<types::Schema>(plan::SchemaOf(*made->inputs_[0]));
  std::vector<std::size_t> key_positions;
  std::vector<std::size_t> state_positions;
  for (std::size_t i = 0; i < made->output_.size(); ++i) {
    if (i < made->keys_.size()) {
      key_positions.push_back(i);
    } else if (i >= made->keys_.size() + 2) {
      state_positions.push_back(i);
    }
  }
  made->key_encoder_ = std::make_unique<RowEncoder>(*made->schema_, std::move(key_positions), true);
  made->value_encoder_ = std::make_unique<RowEncoder>(*made->schema_, std::move(state_positions), false);
  return OperatorPtr(std::move(made));
}

PlanPtr SessionWindow::Above(const PlanPtr& leaf) const {
  const Attribute& window = node_grouping_[session_at_];
  const ExprPtr session =
      plan::MakeCall("spark_struct", {plan::MakeAttribute(start_), plan::MakeAttribute(end_)}, window.type, false);
  std::vector<ExprPtr> exprs = ColumnsOf(output_);
  std::vector<Attribute> columns = output_;
  exprs.push_back(session);
  columns.push_back(window);
  const PlanPtr with_session = plan::MakeProject(leaf, std::move(exprs), std::move(columns));
  return AggregateNode(with_session, ColumnsOf(node_grouping_), states_.finals, node_output_);
}

Result<SessionWindow::ByKey> SessionWindow::ReadRows(OperatorBatch& batch) const {
  ByKey rows;
  FLEUVE_ASSIGN(auto reader, batch.Read(0));
  std::string key;
  for (;;) {
    FLEUVE_ASSIGN(const auto next, reader->Next());
    if (!next) {
      return rows;
    }
    FLEUVE_TRY(batch.CheckCancelled());
    const std::vector<std::int64_t> starts = EventTimesOf(*next, keys_.size());
    const std::vector<std::int64_t> ends = EventTimesOf(*next, keys_.size() + 1);
    for (std::int64_t row = 0; row < next->row_count(); ++row) {
      const auto at = static_cast<std::size_t>(row);
      if (mode_ != "complete" && timed_ && batch.late_micros && ends[at] <= *batch.late_micros) {
        ++batch.counts->rows_dropped_by_watermark;
        continue;
      }
      key.clear();
      key_encoder_->EncodeRow(*next, row, &key);
      std::string states;
      value_encoder_->EncodeRow(*next, row, &states);
      rows[key].push_back({starts[at], {ends[at], std::move(states)}});
    }
  }
}

Result<void> SessionWindow::AddKey(const std::string& key,
                                   std::vector<std::pair<std::int64_t, std::pair<std::int64_t, std::string>>>& rows,
                                   const state::Store& store, Chunk& chunk) const {
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  FLEUVE_ASSIGN(const std::vector<Session> known, SessionsIn(store.Get(kSessions, key)));
  // Old sessions stand before new rows of the same start: the order counts for first, last and lists.
  std::vector<Session> parts;
  auto old = known.begin();
  for (const auto& [start, row] : rows) {
    while (old != known.end() && old->start <= start) {
      parts.push_back(*old++);
    }
    parts.push_back(Session{start, row.first, row.second});
  }
  parts.insert(parts.end(), old, known.end());
  std::size_t first = 0;
  while (first < parts.size()) {
    std::int64_t end = parts[first].end;
    std::size_t next = first + 1;
    while (next < parts.size() && parts[next].start <= end) {
      end = std::max(end, parts[next].end);
      ++next;
    }
    const std::string times = TimesPart(parts[first].start, end);
    chunk.merges = chunk.merges || next - first > 1;
    for (std::size_t i = first; i < next; ++i) {
      chunk.rows.Add({key, times, parts[i].states});
    }
    chunk.row_count += static_cast<std::int64_t>(next - first);
    first = next;
  }
  chunk.keys.push_back(key);
  return {};
}

Result<void> SessionWindow::Flush(Chunk& chunk, OperatorBatch& batch, state::Store& store) const {
  FLEUVE_TRY(chunk.rows.Finish());
  if (std::exchange(chunk.row_count, 0) == 0) {
    return {};
  }
  FLEUVE_TRY(batch.CheckCancelled());
  std::vector<RecordBatch> merged = std::exchange(chunk.batches, {});
  if (chunk.merges) {
    const std::vector<Attribute> grouping(output_.begin(),
                                          output_.begin() + static_cast<std::ptrdiff_t>(keys_.size() + 2));
    const PlanPtr leaf = RowsPlan(output_, std::move(merged));
    FLEUVE_ASSIGN(merged, batch.Query(AggregateNode(leaf, ColumnsOf(grouping), states_.merge, merged_output_)));
  }
  chunk.merges = false;
  const Stopwatch watch(&batch.counts->all_updates_ns);
  std::unordered_map<std::string, std::vector<std::pair<Session, std::string>>> by_key;
  std::string key;
  for (const RecordBatch& part : merged) {
    const std::vector<std::int64_t> starts = EventTimesOf(part, keys_.size());
    const std::vector<std::int64_t> ends = EventTimesOf(part, keys_.size() + 1);
    for (std::int64_t row = 0; row < part.row_count(); ++row) {
      const auto at = static_cast<std::size_t>(row);
      key.clear();
      key_encoder_->EncodeRow(part, row, &key);
      std::string states;
      value_encoder_->EncodeRow(part, row, &states);
      by_key[key].push_back({Session{starts[at], ends[at], {}}, std::move(states)});
    }
  }
  for (const std::string& one : chunk.keys) {
    auto& found = by_key[one];
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first.start < b.first.start; });
    std::vector<Session> sessions;
    for (auto& [session, states] : found) {
      session.states = states;
      sessions.push_back(session);
    }
    FLEUVE_TRY(Put(one, sessions, batch, store));
  }
  chunk.keys.clear();
  return {};
}

Result<void> SessionWindow::Put(const std::string& key, const std::vector<Session>& sessions, OperatorBatch& batch,
                                state::Store& store) const {
  const std::string before(store.Get(kSessions, key));
  FLEUVE_ASSIGN(const std::vector<Session> known, SessionsIn(before));
  const auto same_start = [](const std::vector<Session>& list, std::int64_t start) {
    // Both lists ascend.
    const auto at = std::lower_bound(list.begin(), list.end(), start,
                                     [](const Session& one, std::int64_t time) { return one.start < time; });
    return at != list.end() && at->start == start ? at : list.end();
  };
  for (const Session& session : known) {
    const auto kept = same_start(sessions, session.start);
    if (kept == sessions.end()) {
      ++batch.counts->rows_removed;
    }
    if (kept == sessions.end() || kept->end != session.end) {
      store.Remove(kTimes, EndKey(session.end, key));
    }
  }
  std::string value;
  for (const Session& session : sessions) {
    const auto old = same_start(known, session.start);
    if (old == known.end() || old->end != session.end) {
      store.Put(kTimes, EndKey(session.end, key), "");
    }
    AppendSession(value, session);
  }
  store.Put(kSessions, key, value);
  // Spark writes every session of a key that has new rows, and counts them so.
  batch.counts->rows_updated += static_cast<std::int64_t>(sessions.size());
  return {};
}

Result<void> SessionWindow::Evict(std::int64_t watermark, OperatorBatch& batch, state::Store& store,
                                  std::vector<RecordBatch>* evicted) const {
  const Stopwatch watch(&batch.counts->all_removals_ns);
  state::ByteRows gone;
  store.Range(kTimes, INT64_MIN, watermark, [&gone](std::string_view key, std::string_view) {
    gone.Add(key);
    return true;
  });
  BatchedRows rows(Decoder(), evicted);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    const std::int64_t end = state::TimeOf(gone[i]);
    const std::string_view key = gone[i].substr(8);
    const std::string value(store.Get(kSessions, key));
    FLEUVE_ASSIGN(const std::vector<Session> sessions, SessionsIn(value));
    std::string kept;
    for (const Session& session : sessions) {
      if (session.end != end) {
        AppendSession(kept, session);
      } else if (evicted != nullptr) {
        rows.Add({key, TimesPart(session.start, session.end), session.states});
      }
    }
    if (kept.empty()) {
      store.Remove(kSessions, key);
    } else {
      store.Put(kSessions, key, kept);
    }
  }
  FLEUVE_TRY(rows.Finish());
  store.RemoveMany(kTimes, gone);
  batch.counts->rows_removed += static_cast<std::int64_t>(gone.size());
  return {};
}

Result<void> SessionWindow::GiveAll(const state::Store& store, std::vector<RecordBatch>* out) const {
  BatchedRows rows(Decoder(), out);
  std::optional<Error> failure;
  store.Scan(kSessions, [&](std::string_view key, std::string_view value) {
    auto sessions = SessionsIn(value);
    if (!sessions.ok()) {
      failure = std::move(sessions).error();
      return false;
    }
    return std::all_of(sessions->begin(), sessions->end(), [&](const Session& session) {
      return rows.Add({key, TimesPart(session.start, session.end), session.states});
    });
  });
  if (failure) {
    return *std::move(failure);
  }
  return rows.Finish();
}

Result<std::shared_ptr<const plan::RowScan>> SessionWindow::Run(OperatorBatch& batch, state::Store& store) {
  auto out = std::make_shared<plan::RowScan>();
  FLEUVE_ASSIGN(ByKey rows, ReadRows(batch));
  Chunk chunk(Decoder());
  for (auto& [key, of_key] : rows) {
    FLEUVE_TRY(AddKey(key, of_key, store, chunk));
    if (chunk.row_count >= kChunkRows) {
      FLEUVE_TRY(Flush(chunk, batch, store));
    }
  }
  FLEUVE_TRY(Flush(chunk, batch, store));
  if (mode_ == "complete") {
    FLEUVE_TRY(GiveAll(store, &out->batches));
  } else if (timed_ && batch.evict_micros) {
    FLEUVE_TRY(Evict(*batch.evict_micros, batch, store, &out->batches));
  }
  return std::shared_ptr<const plan::RowScan>(std::move(out));
}

}  // namespace

Result<OperatorPtr> MakeSessionWindow(const LogicalPlan& node, const OperatorContext& context) {
  return SessionWindow::Make(node, context);
}

}  // namespace fleuve::operators
