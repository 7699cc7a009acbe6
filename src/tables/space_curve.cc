#include <algorithm>

#include "plan/call_function.h"
#include "tables/data_files_internal.h"
#include "tables/space_curve_internal.h"

namespace fleuve::tables {
namespace {

using plan::ExprPtr;
using types::DataType;
using types::Value;

constexpr std::int64_t kSampleRows = 40000;
/// Bits of a column's rank: cells finer than files, and a comparison tree that stays small.
constexpr int kMostBits = 8;
constexpr int kCurveBits = 62;

/// Ascending values that cut the sampled column into ranges of about equal size; without duplicates.
Result<Value::List> Cuts(const TableContext& context, const plan::PlanPtr& sample, const plan::Attribute& column,
                         std::size_t ranges) {
  const ExprPtr value = plan::MakeAttribute(column);
  const plan::PlanPtr alone =
      ProjectTo(plan::MakeFilter(sample, plan::MakeCall("isnotnull", {value}, DataType::Boolean(), false)), {value},
                DataType::Struct({plan::FieldOf(column)}));
  auto sort = std::make_shared<plan::LogicalPlan>();
  sort->kind = plan::PlanKind::kSort;
  sort->children = {alone};
  sort->output = alone->output;
  sort->order_by.push_back({plan::MakeAttribute(alone->output[0]), true, true});
  FLEUVE_ASSIGN(const std::vector<Value::List> sorted, RunRows(context, sort));
  Value::List cuts;
  for (std::size_t i = 1; i < ranges && !sorted.empty(); ++i) {
    const Value& cut = sorted[i * sorted.size() / ranges][0];
    if (cuts.empty() || !(cuts.back() == cut)) {
      cuts.push_back(cut);
    }
  }
  return cuts;
}

/// The bits of a rank, `stride` apart, the first at `offset`.
std::int64_t Spread(std::int64_t rank, int bits, int stride, int offset) {
  std::int64_t out = 0;
  for (int bit = 0; bit < bits; ++bit) {
    out |= (rank >> bit & 1) << (bit * stride + offset);
  }
  return out;
}

/// A balanced tree of comparisons that gives `leaves[i]` for values in range i; NULL is in the first.
ExprPtr Tree(const ExprPtr& value, const Value::List& cuts, const std::vector<std::int64_t>& leaves, std::size_t from,
             std::size_t to) {
  if (from == to) {
    return plan::MakeLiteral(Value(leaves[from]), DataType::Long());
  }
  const std::size_t middle = from + (to - from) / 2;
  const ExprPtr above =
      plan::MakeCall("ge", {value, plan::MakeLiteral(cuts[middle], value->type)}, DataType::Boolean(), value->nullable);
  return plan::MakeCase({above, Tree(value, cuts, leaves, middle + 1, to), Tree(value, cuts, leaves, from, middle)},
                        true, DataType::Long());
}

}  // namespace

Result<std::vector<plan::SortKey>> CurveOrder(const TableContext& context, const plan::PlanPtr& rows,
                                              const std::vector<plan::Attribute>& columns,
                                              const plan::Attribute& position, std::int64_t row_count) {
  std::vector<plan::SortKey> keys;
  if (columns.size() > 1) {
    const std::int64_t every = std::max<std::int64_t>(1, row_count / kSampleRows);
    plan::PlanPtr sample = rows;
    if (every > 1) {
      FLEUVE_ASSIGN(
          ExprPtr turn,
          plan::CallFunction("mod", {plan::MakeAttribute(position), plan::MakeLiteral(Value(every), DataType::Long())},
                             context.config));
      const ExprPtr zero = plan::MakeLiteral(Value(std::int64_t{0}), DataType::Long());
      sample = plan::MakeFilter(rows, plan::MakeCall("eq", {std::move(turn), zero}, DataType::Boolean(), true));
    }
    const int stride = static_cast<int>(columns.size());
    const int bits = std::clamp(kCurveBits / stride, 1, kMostBits);
    ExprPtr curve;
    for (int i = 0; i < stride && i < kCurveBits; ++i) {
      const plan::Attribute& column = columns[static_cast<std::size_t>(i)];
      FLEUVE_ASSIGN(const Value::List cuts, Cuts(context, sample, column, std::size_t{1} << bits));
      std::vector<std::int64_t> leaves;
      const auto ranges = static_cast<std::int64_t>(cuts.size()) + 1;
      for (std::int64_t range = 0; range < ranges; ++range) {
        // Few distinct values use the high bits, so that they weigh as much as those of other columns.
        leaves.push_back(Spread((range << bits) / ranges, bits, stride, stride - 1 - i));
      }
      const ExprPtr part = Tree(plan::MakeAttribute(column), cuts, leaves, 0, cuts.size());
      if (curve == nullptr) {
        curve = part;
      } else {
        FLEUVE_ASSIGN(curve, plan::CallFunction("+", {curve, part}, context.config));
      }
    }
    keys.push_back({std::move(curve), true, true});
  }
  for (const plan::Attribute& column : columns) {
    keys.push_back({plan::MakeAttribute(column), true, true});
  }
  return keys;
}

}  // namespace fleuve::tables
