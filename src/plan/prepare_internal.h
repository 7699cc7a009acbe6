#pragma once

/// \file
/// The steps of Prepare, in the order they run.

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/analyzer.h"
#include "plan/logical_plan.h"

namespace fleuve::plan {

/// Expressions by the attribute they stand for.
using Substitution = std::unordered_map<std::int64_t, ExprPtr>;

/// Attributes by their ids.
using Ids = std::unordered_set<std::int64_t>;

Ids IdsOf(const std::vector<Attribute>& attributes);
/// `expr` with every attribute of the map replaced; display texts stay.
ExprPtr Substitute(const ExprPtr& expr, const Substitution& map);
/// Levels of the expression, 1 for a leaf.
int DepthOf(const ExprPtr& expr);
/// Nodes of the expression; stops counting beyond `limit`.
int SizeOf(const ExprPtr& expr, int limit);
/// The operands of a tree of `and` (or `or`), left to right.
std::vector<ExprPtr> Flatten(const ExprPtr& expr, const char* function);
/// A balanced tree of `and` (or `or`) over at least one operand.
ExprPtr Balanced(const std::vector<ExprPtr>& operands, const char* function);

/// Refuses operations on strings with a collation; they may be read and carried.
Result<void> RefuseCollations(const PlanPtr& plan);
/// Literals that are cast to a wider type have that type.
PlanPtr FoldLiterals(const PlanPtr& plan);
/// Leaves out columns that nothing above needs (`_metadata` above all).
PlanPtr PruneColumns(const PlanPtr& plan);
/// Makes one projection of adjacent ones, one filter of adjacent ones.
PlanPtr MergeNeighbours(const PlanPtr& plan);
/// Moves filters towards the leaves in the order in which Spark evaluates them; tables become scans.
Result<PlanPtr> PushFilters(const PlanPtr& plan);
/// The first output of every aggregate that only counts all rows of a table whose files say how many they have.
/// Before tables become scans: scans of streams are to be read, as their rows are counted on the way.
Ids CountsOfTables(const PlanPtr& plan);
/// Those of `counts` whose files all say it are what they say: no file is opened.
PlanPtr CountFromStatistics(const PlanPtr& plan, const Ids& counts);
/// True where functions of the user stand in the plan.
bool HoldsExternal(const PlanPtr& plan);
/// Makes operators of the calls of functions of the user.
Result<PlanPtr> CutExternal(const PlanPtr& plan, const AnalysisConfig& config);
/// Keeps what can fail from being evaluated where a guard excludes it.
PlanPtr AddGuards(const PlanPtr& plan);
/// Gives sorts, windows, groups and comparisons keys that the engine orders and tells apart as Spark does: NaN, -0.0,
/// NULL inside arrays and structs.
PlanPtr AddOrderKeys(const PlanPtr& plan);
/// Cuts expressions of more than 64 levels into several projections.
PlanPtr SplitDeepExpressions(const PlanPtr& plan);

}  // namespace fleuve::plan
