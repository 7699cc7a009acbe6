#pragma once

/// \file
/// What a join of two streams knows from its condition: the keys, and how long rows of each side can still meet others.

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/logical_plan.h"

namespace fleuve::plan {

/// One equality between the sides; `left` is over the left input alone, `right` over the right one.
struct JoinKey {
  ExprPtr left;
  ExprPtr right;
  /// `<=>`: NULLs are equal.
  bool null_safe = false;
};

struct StreamJoinParts {
  std::vector<JoinKey> keys;
  /// Parts of the condition over the left input alone (the right one alone): rows for which it is not true meet nobody.
  std::vector<ExprPtr> left_only;
  std::vector<ExprPtr> right_only;
  /// What is left, over both.
  std::vector<ExprPtr> both;
};

/// Splits the condition of a kJoin node.
StreamJoinParts SplitStreamJoin(const LogicalPlan& join);

/// When rows of one side can meet no more rows: where `time` (a timestamp over the side's columns, or over `keys` where
/// `of_key`) is at most the watermark and `offset_ms`.
struct JoinExpiry {
  ExprPtr time;
  bool of_key = false;
  std::int64_t offset_ms = 0;
};

struct JoinExpiries {
  std::optional<JoinExpiry> left;
  std::optional<JoinExpiry> right;
};

/// Errors: none; a side without a bound has no value.
JoinExpiries StreamJoinExpiries(const LogicalPlan& join, const StreamJoinParts& parts);

/// True where one of the keys is a column with a watermark.
bool HasWatermarkInKeys(const StreamJoinParts& parts);

/// How far behind the watermark of `other` the times of `side` may be and still be met, by the comparisons of the
/// condition: rows of `side` not after the watermark and this many milliseconds are met by no row to come. Nullopt: the
/// condition does not bound them.
std::optional<std::int64_t> JoinStateOffsetMs(const std::vector<Attribute>& side, const std::vector<Attribute>& other,
                                              const ExprPtr& condition);

}  // namespace fleuve::plan
