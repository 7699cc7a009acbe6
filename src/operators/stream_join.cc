// A join of two streams. New left rows meet the right rows of earlier batches, then new right rows meet all left rows;
// rows wait in the state until the watermark says that nobody can meet them any more. Pairs are found by the bytes of
// their keys; what else the condition says, the engine decides over the pairs.

#include "plan/stream_join.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_set>

#include "operators/join_side_internal.h"
#include "operators/stateful_operator_internal.h"
#include "operators/stopwatch_internal.h"
#include "plan/event_time.h"

namespace fleuve::operators {

namespace {

using columnar::RecordBatch;
using plan::Attribute;
using plan::ExprPtr;
using plan::JoinType;
using plan::LogicalPlan;
using plan::PlanPtr;

/// Pairs that are looked at together.
constexpr std::size_t kChunkPairs = 1 << 15;
constexpr std::size_t kChunkBytes = 32 << 20;

bool BooleanAt(const RecordBatch& batch, std::size_t column, std::int64_t row) {
  const ArrowArray& root = *batch.array->get();
  const ArrowArray& array = *root.children[column];
  const std::int64_t at = root.offset + array.offset + row;
  const auto bit = [at](const void* buffer) {
    return (static_cast<const std::uint8_t*>(buffer)[at >> 3] >> (at & 7) & 1) != 0;
  };
  return (array.buffers[0] == nullptr || bit(array.buffers[0])) && bit(array.buffers[1]);
}

std::int64_t LongAt(const RecordBatch& batch, std::size_t column, std::int64_t row) {
  const ArrowArray& root = *batch.array->get();
  const ArrowArray& array = *root.children[column];
  return static_cast<const std::int64_t*>(array.buffers[1])[root.offset + array.offset + row];
}

/// A bigint as `RowEncoder` writes a row of one.
void NumberPart(std::uint64_t value, std::string* out) {
  out->assign(1, '\0');
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// True conjunction, NULL is false.
ExprPtr AllTrue(const std::vector<ExprPtr>& conditions) {
  ExprPtr all;
  for (const ExprPtr& condition : conditions) {
    all = all ? plan::MakeAnd(all, condition) : condition;
  }
  const ExprPtr yes = plan::MakeLiteral(types::Value(true), types::DataType::Boolean());
  if (!all) {
    return yes;
  }
  const ExprPtr no = plan::MakeLiteral(types::Value(false), types::DataType::Boolean());
  return plan::MakeCase({all, yes, no}, true, types::DataType::Boolean());
}

/// What the operator knows of one of its inputs.
struct Side {
  std::vector<Attribute> columns;
  std::vector<Attribute> keys;
  std::shared_ptr<const types::Schema> schema;
  std::unique_ptr<RowEncoder> key_encoder;
  std::unique_ptr<RowEncoder> row_encoder;
  /// Positions of the columns that the fragment computes beside.
  std::size_t expiry_at = 0;
  std::size_t meets_at = 0;
  std::size_t has_key_at = 0;
  std::optional<std::size_t> event_time_at;
  /// Rows whose expiry time is at or below the watermark and this go.
  std::optional<std::int64_t> offset_micros;
  /// Rows without a match are given with NULLs.
  bool outer = false;
};

/// The new rows of one side in this batch.
struct NewRows {
  state::ByteRows keys;
  state::ByteRows rows;
  std::vector<std::int64_t> times;
  std::vector<bool> has_key;
  std::vector<bool> matched;
};

/// A row of the state.
struct Place {
  std::string_view key;
  std::uint32_t chunk = 0;
  std::uint32_t place = 0;
  bool operator==(const Place&) const = default;
};
struct PlaceHash {
  std::size_t operator()(const Place& row) const {
    return (std::hash<std::string_view>()(row.key) * 31 + row.chunk) * 31 + row.place;
  }
};

class StreamJoin final : public StatefulOperator {
 public:
  static Result<OperatorPtr> Make(const LogicalPlan& node, const OperatorContext& context);

  std::string name() const override { return "symmetricHashJoin"; }
  std::vector<state::SpaceSpec> spaces() const override;
  const std::vector<PlanPtr>& inputs() const override { return inputs_; }
  const std::vector<Attribute>& output() const override { return output_; }
  PlanPtr Above(const PlanPtr& leaf) const override { return GiveOutput(leaf, output_, node_output_); }
  Result<std::shared_ptr<const plan::RowScan>> Run(OperatorBatch& batch, state::Store& store) override;
  std::optional<std::int64_t> OutputWatermark(std::optional<std::int64_t> input) const override;
  bool NeedsBatch(std::optional<std::int64_t> used, std::optional<std::int64_t> next) const override {
    return used && next && *next > *used && (left_.offset_micros || right_.offset_micros);
  }
  std::int64_t rows_total(const state::Store& store) const override {
    return JoinSide::RowCount(store, 0) + JoinSide::RowCount(store, JoinSide::kSpaces);
  }
  std::int64_t instances_per_partition() const override { return 4; }

 private:
  struct Work;
  static PlanPtr InputOf(const LogicalPlan& node, bool of_left, const plan::StreamJoinParts& parts,
                         const std::optional<plan::JoinExpiry>& expiry, std::set<std::int64_t> needed, Side* side);
  /// The new rows of one input; those that meet nobody by themselves are given at once where their side is an outer
  /// one.
  Result<NewRows> ReadSide(bool of_left, Work& work);
  /// Meets the new rows of one side with the state of the other.
  Result<void> Meet(bool new_is_left, NewRows& rows, Work& work);
  struct Pair {
    std::size_t row = 0;
    JoinSide::Row other;
  };
  Result<void> Decide(bool new_is_left, NewRows& rows, const std::vector<Pair>& pairs, Work& work);
  Result<void> Store(bool of_left, const NewRows& rows, Work& work) const;
  Result<void> Evict(bool of_left, Work& work) const;
  /// Adds a row to the output; a side without data gives NULLs.
  static Result<void> Give(std::string_view left, std::string_view right, std::uint64_t number, Work& work);

  JoinType type_ = JoinType::kInner;
  Side left_;
  Side right_;
  /// What the keys and the sides alone do not decide; null: nothing.
  ExprPtr condition_;
  std::vector<PlanPtr> inputs_;
  std::vector<Attribute> node_output_;
  /// Left columns, right columns, the number of the pair.
  std::vector<Attribute> pair_columns_;
  std::vector<Attribute> output_;
  std::shared_ptr<const types::Schema> pair_schema_;
  std::shared_ptr<const types::Schema> output_schema_;
};

/// One run.
struct StreamJoin::Work {
  OperatorBatch& batch;
  JoinSide left;
  JoinSide right;
  BatchedRows out;
  std::vector<RecordBatch>* batches = nullptr;
  std::string number_part;

  JoinSide& side(bool of_left) { return of_left ? left : right; }
};

PlanPtr StreamJoin::InputOf(const LogicalPlan& node, bool of_left, const plan::StreamJoinParts& parts,
                            const std::optional<plan::JoinExpiry>& expiry, std::set<std::int64_t> needed, Side* side) {
  const PlanPtr& child = node.children[of_left ? 0 : 1];
  for (const ExprPtr& condition : parts.both) {
    plan::VisitExpr(condition, [&needed](const plan::Expr& part) {
      if (part.kind == plan::ExprKind::kAttribute) {
        needed.insert(part.attribute.id.value);
      }
    });
  }
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  for (const Attribute& attribute : child->output) {
    if (needed.contains(attribute.id.value)) {
      exprs.push_back(plan::MakeAttribute(attribute));
      output.push_back(attribute);
    }
  }
  side->columns = Visible(output);
  output = side->columns;
  const auto add = [&](const char* name, const ExprPtr& expr) {
    exprs.push_back(expr);
    output.push_back(NewColumn(name, expr->type));
    return output.size() - 1;
  };
  std::vector<std::size_t> row_columns;
  for (std::size_t i = 0; i < side->columns.size(); ++i) {
    row_columns.push_back(i);
  }
  std::vector<std::size_t> key_columns;
  std::vector<ExprPtr> keyed;
  for (const plan::JoinKey& key : parts.keys) {
    const ExprPtr& expr = of_left ? key.left : key.right;
    key_columns.push_back(add("key", expr));
    side->keys.push_back(output.back());
    if (!key.null_safe) {
      keyed.push_back(plan::MakeCall("isnotnull", {expr}, types::DataType::Boolean(), false));
    }
  }
  side->expiry_at = add("expiry", expiry ? expiry->time : plan::MakeNull(types::DataType::Timestamp()));
  side->meets_at = add("meets", AllTrue(of_left ? parts.left_only : parts.right_only));
  side->has_key_at = add("has_key", AllTrue(keyed));
  if (const Attribute* time = plan::EventTimeColumn(child->output)) {
    side->event_time_at = add("event_time", plan::MakeAttribute(*time));
  }
  if (expiry) {
    side->offset_micros = expiry->offset_ms * 1000;
  }
  side->schema = SchemaFor(output);
  side->key_encoder = std::make_unique<RowEncoder>(*side->schema, std::move(key_columns), true);
  side->row_encoder = std::make_unique<RowEncoder>(*side->schema, std::move(row_columns), false);
  return plan::MakeProject(child, std::move(exprs), std::move(output));
}

Result<OperatorPtr> StreamJoin::Make(const LogicalPlan& node, const OperatorContext& context) {
  auto made = std::make_unique<StreamJoin>();
  made->type_ = node.join_type;
  made->node_output_ = node.output;
  const plan::StreamJoinParts parts = plan::SplitStreamJoin(node);
  if (node.lateral) {
    return Error::Unsupported("a lateral join of two streams");
  }
  switch (node.join_type) {
    case JoinType::kInner:
    case JoinType::kCross:
    case JoinType::kLeft:
    case JoinType::kRight:
    case JoinType::kFull:
    case JoinType::kLeftSemi:
      break;
    case JoinType::kLeftAnti:
      return Error::Unsupported("an anti join of two streams");
  }
  const plan::JoinExpiries expiries = plan::StreamJoinExpiries(node, parts);
  made->left_.outer = node.join_type == JoinType::kLeft || node.join_type == JoinType::kFull;
  made->right_.outer = node.join_type == JoinType::kRight || node.join_type == JoinType::kFull;
  // What nobody above reads is not kept; the condition's own columns are.
  std::set<std::int64_t> needed = context.needed;
  made->inputs_.push_back(InputOf(node, true, parts, expiries.left, needed, &made->left_));
  made->inputs_.push_back(InputOf(node, false, parts, expiries.right, std::move(needed), &made->right_));
  for (const ExprPtr& condition : parts.both) {
    made->condition_ = made->condition_ ? plan::MakeAnd(made->condition_, condition) : condition;
  }
  made->pair_columns_ = made->left_.columns;
  made->pair_columns_.insert(made->pair_columns_.end(), made->right_.columns.begin(), made->right_.columns.end());
  for (Attribute& column : made->pair_columns_) {
    column.nullable = true;
  }
  Attribute number = NewColumn("pair", types::DataType::Long());
  made->pair_columns_.push_back(number);
  made->output_ = made->pair_columns_;
  if (node.join_type == JoinType::kLeftSemi) {
    made->output_ = made->left_.columns;
    made->output_.push_back(number);
  }
  made->pair_schema_ = SchemaFor(made->pair_columns_);
  made->output_schema_ = SchemaFor(made->output_);
  return OperatorPtr(std::move(made));
}

std::vector<state::SpaceSpec> StreamJoin::spaces() const {
  std::vector<state::SpaceSpec> spaces;
  for (const bool of_left : {true, false}) {
    const Side& side = of_left ? left_ : right_;
    const std::string prefix = of_left ? "left-" : "right-";
    state::SpaceSpec rows;
    rows.name = prefix + "rows";
    rows.key_schema = TypesText(side.keys);
    rows.value_schema = TypesText(side.columns);
    state::SpaceSpec times;
    times.name = prefix + "times";
    times.timed = true;
    times.key_schema = rows.key_schema;
    times.value_schema = "struct<>";
    state::SpaceSpec totals;
    totals.name = prefix + "totals";
    totals.key_schema = "struct<>";
    totals.value_schema = "struct<bigint,bigint>";
    spaces.push_back(std::move(rows));
    spaces.push_back(std::move(times));
    spaces.push_back(std::move(totals));
  }
  return spaces;
}

std::optional<std::int64_t> StreamJoin::OutputWatermark(std::optional<std::int64_t> input) const {
  if (!input) {
    return input;
  }
  // A row may wait as long as its side's state does.
  std::int64_t least = *input;
  for (const Side* side : {&left_, &right_}) {
    if (side->offset_micros) {
      least = std::min(least, *input + *side->offset_micros);
    }
  }
  return std::max<std::int64_t>(least, 0);
}

Result<void> StreamJoin::Give(std::string_view left, std::string_view right, std::uint64_t number, Work& work) {
  NumberPart(number, &work.number_part);
  return work.out.Add({left, right, work.number_part}) ? Result<void>() : work.out.Finish();
}

Result<NewRows> StreamJoin::ReadSide(bool of_left, Work& work) {
  const Side& side = of_left ? left_ : right_;
  NewRows rows;
  std::string bytes;
  FLEUVE_ASSIGN(auto reader, work.batch.Read(of_left ? 0 : 1));
  for (;;) {
    FLEUVE_ASSIGN(const auto next, reader->Next());
    if (!next) {
      return rows;
    }
    FLEUVE_TRY(work.batch.CheckCancelled());
    const std::vector<std::int64_t> times = EventTimesOf(*next, side.expiry_at);
    std::vector<std::int64_t> event_times;
    if (side.event_time_at && work.batch.late_micros) {
      event_times = EventTimesOf(*next, *side.event_time_at);
    }
    for (std::int64_t row = 0; row < next->row_count(); ++row) {
      const bool meets = BooleanAt(*next, side.meets_at, row);
      const bool has_key = BooleanAt(*next, side.has_key_at, row);
      if (!side.outer && !(meets && has_key)) {
        continue;
      }
      const auto at = static_cast<std::size_t>(row);
      if (!event_times.empty() && event_times[at] != kNoTime && event_times[at] <= *work.batch.late_micros) {
        ++work.batch.counts->rows_dropped_by_watermark;
        continue;
      }
      if (!meets) {
        bytes.clear();
        side.row_encoder->EncodeRow(*next, row, &bytes);
        FLEUVE_TRY(of_left ? Give(bytes, {}, 0, work) : Give({}, bytes, 0, work));
        continue;
      }
      side.key_encoder->EncodeRow(*next, row, &rows.keys.bytes());
      rows.keys.EndRow();
      side.row_encoder->EncodeRow(*next, row, &rows.rows.bytes());
      rows.rows.EndRow();
      rows.times.push_back(times[at]);
      rows.has_key.push_back(has_key);
      rows.matched.push_back(false);
    }
  }
}

Result<void> StreamJoin::Meet(bool new_is_left, NewRows& rows, Work& work) {
  JoinSide& others = work.side(!new_is_left);
  // A left row of a semi join is given once.
  const bool skips_matched = type_ == JoinType::kLeftSemi && !new_is_left;
  std::vector<Pair> pairs;
  std::size_t bytes = 0;
  for (std::size_t row = 0; row < rows.times.size(); ++row) {
    if (row % JoinSide::kNearRows == 0) {
      others.Near(rows.keys, row, std::min(JoinSide::kNearRows, rows.times.size() - row));
    }
    if (!rows.has_key[row]) {
      continue;
    }
    FLEUVE_TRY(others.Each(rows.keys[row], row % JoinSide::kNearRows, [&](const JoinSide::Row& other) -> Result<void> {
      if (skips_matched && other.matched) {
        return {};
      }
      pairs.push_back(Pair{row, other});
      bytes += rows.rows[row].size() + other.bytes.size();
      return {};
    }));
    // A decision may change the store: between keys only, when no view of a pair is needed any more.
    if (pairs.size() >= kChunkPairs || bytes >= kChunkBytes) {
      FLEUVE_TRY(work.batch.CheckCancelled());
      FLEUVE_TRY(Decide(new_is_left, rows, pairs, work));
      pairs.clear();
      bytes = 0;
    }
  }
  return pairs.empty() ? Result<void>() : Decide(new_is_left, rows, pairs, work);
}

Result<void> StreamJoin::Decide(bool new_is_left, NewRows& rows, const std::vector<Pair>& pairs, Work& work) {
  JoinSide& others = work.side(!new_is_left);
  const bool semi = type_ == JoinType::kLeftSemi;
  const bool marks_others = (new_is_left ? right_.outer : left_.outer) || (semi && !new_is_left);
  std::vector<bool> meets(pairs.size(), true);
  if (condition_ || !semi) {
    RowDecoder decoder(pair_schema_, {left_.columns.size(), right_.columns.size(), 1});
    std::string number;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::string_view other = pairs[i].other.bytes;
      const std::string_view mine = rows.rows[pairs[i].row];
      NumberPart(i, &number);
      FLEUVE_TRY(decoder.Add({new_is_left ? mine : other, new_is_left ? other : mine, number}));
    }
    std::vector<RecordBatch> found;
    found.push_back(decoder.Finish());
    if (condition_) {
      meets.assign(pairs.size(), false);
      FLEUVE_ASSIGN(found, work.batch.Query(plan::MakeFilter(RowsPlan(pair_columns_, std::move(found)), condition_)));
      for (const RecordBatch& part : found) {
        for (std::int64_t row = 0; row < part.row_count(); ++row) {
          meets[static_cast<std::size_t>(LongAt(part, pair_columns_.size() - 1, row))] = true;
        }
      }
    }
    if (!semi) {
      for (RecordBatch& part : found) {
        if (part.row_count() > 0) {
          work.batches->push_back(std::move(part));
        }
      }
    }
  }
  // The other side's rows that matched now for the first time, each once.
  std::unordered_set<Place, PlaceHash> marked;
  std::vector<const Pair*> to_mark;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!meets[i]) {
      continue;
    }
    const Pair& pair = pairs[i];
    const bool first = !rows.matched[pair.row];
    rows.matched[pair.row] = true;
    if (semi && new_is_left && first) {
      FLEUVE_TRY(Give(rows.rows[pair.row], {}, 0, work));
    }
    if (marks_others && !pair.other.matched &&
        marked.insert(Place{rows.keys[pair.row], pair.other.chunk, pair.other.place}).second) {
      to_mark.push_back(&pair);
      if (semi) {
        FLEUVE_TRY(Give(pair.other.bytes, {}, 0, work));
      }
    }
  }
  for (const Pair* pair : to_mark) {
    FLEUVE_TRY(others.SetMatched(rows.keys[pair->row], pair->other.chunk, pair->other.place));
  }
  return {};
}

Result<void> StreamJoin::Store(bool of_left, const NewRows& rows, Work& work) const {
  const Side& side = of_left ? left_ : right_;
  const Stopwatch watch(&work.batch.counts->all_updates_ns);
  std::optional<std::int64_t> limit;
  if (side.offset_micros && work.batch.evict_micros) {
    limit = *work.batch.evict_micros + *side.offset_micros;
  }
  for (std::size_t row = 0; row < rows.times.size(); ++row) {
    if (row % JoinSide::kNearRows == 0) {
      work.side(of_left).Near(rows.keys, row, std::min(JoinSide::kNearRows, rows.times.size() - row));
    }
    const bool matched = rows.matched[row];
    if (of_left && matched && type_ == JoinType::kLeftSemi) {
      continue;  // given; no row to come may give it again
    }
    // New left rows are met by the new right rows first; a right row that would go at once owes nothing any more,
    // unless it was not matched and its side is an outer one.
    const bool expired = limit && rows.times[row] != kNoTime && rows.times[row] <= *limit;
    if (!of_left && expired && (matched || !side.outer)) {
      continue;
    }
    FLEUVE_TRY(work.side(of_left).Add(rows.keys[row], rows.rows[row], side.offset_micros ? rows.times[row] : kNoTime,
                                      matched));
    ++work.batch.counts->rows_updated;
  }
  return {};
}

Result<void> StreamJoin::Evict(bool of_left, Work& work) const {
  const Side& side = of_left ? left_ : right_;
  if (!side.offset_micros || !work.batch.evict_micros) {
    return {};
  }
  const Stopwatch watch(&work.batch.counts->all_removals_ns);
  const std::int64_t limit = *work.batch.evict_micros + *side.offset_micros;
  FLEUVE_ASSIGN(const std::int64_t gone,
                work.side(of_left).Expire(limit, [&](const JoinSide::Row& row) -> Result<void> {
                  if (!side.outer || row.matched) {
                    return {};
                  }
                  return of_left ? Give(row.bytes, {}, 0, work) : Give({}, row.bytes, 0, work);
                }));
  if (!side.outer) {
    // Rows that leave an outer side are not counted, as in Spark.
    work.batch.counts->rows_removed += gone;
  }
  return {};
}

Result<std::shared_ptr<const plan::RowScan>> StreamJoin::Run(OperatorBatch& batch, state::Store& store) {
  auto out = std::make_shared<plan::RowScan>();
  const bool semi = type_ == JoinType::kLeftSemi;
  Work work{batch,
            JoinSide(store, 0),
            JoinSide(store, 3),
            BatchedRows(RowDecoder(output_schema_, {left_.columns.size(), semi ? 0 : right_.columns.size(), 1}),
                        &out->batches, kChunkPairs),
            &out->batches,
            {}};
  FLEUVE_ASSIGN(NewRows left, ReadSide(true, work));
  FLEUVE_ASSIGN(NewRows right, ReadSide(false, work));
  FLEUVE_TRY(Meet(true, left, work));
  FLEUVE_TRY(Store(true, left, work));
  FLEUVE_TRY(Meet(false, right, work));
  FLEUVE_TRY(Store(false, right, work));
  FLEUVE_TRY(Evict(true, work));
  FLEUVE_TRY(Evict(false, work));
  work.left.Finish();
  work.right.Finish();
  FLEUVE_TRY(work.out.Finish());
  return std::shared_ptr<const plan::RowScan>(std::move(out));
}

}  // namespace

Result<OperatorPtr> MakeStreamJoin(const LogicalPlan& node, const OperatorContext& context) {
  return StreamJoin::Make(node, context);
}

}  // namespace fleuve::operators
