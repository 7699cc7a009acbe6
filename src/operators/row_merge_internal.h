#pragma once

/// \file
/// States of simple aggregates (counts, sums, extremes, bits of fixed width) folded as bytes: no query, no columns.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators/aggregate_states_internal.h"

namespace fleuve::operators {

/// Folds rows of state columns as `RowEncoder` writes them (not as keys).
class RowMerger {
 public:
  /// Nullopt where a column's states need the engine.
  static std::optional<RowMerger> For(const AggregateStates& states);
  /// Appends the fold of `older` and `newer`, in this order, to `out`. False where a sum leaves its range: the engine
  /// shall merge these rows and say so. What was appended until then is for the caller to drop.
  bool Merge(std::string_view older, std::string_view newer, std::string* out) const;

 private:
  enum class Fold { kSum, kWrappingSum, kMin, kMax, kAnd, kOr, kXor };
  enum class Kind { kBoolean, kInt8, kInt16, kInt32, kInt64, kFloat, kDouble };
  struct Column {
    Fold fold = Fold::kSum;
    Kind kind = Kind::kInt64;
    std::size_t width = 8;
  };
  template <typename T>
  static bool FoldReal(Fold fold, const char* older, const char* newer, std::string* out);
  template <typename T>
  static bool FoldWhole(Fold fold, const char* older, const char* newer, std::string* out);

  std::vector<Column> columns_;
};

}  // namespace fleuve::operators
