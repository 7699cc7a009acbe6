#pragma once

/// \file
/// From a Spark Connect relation to a typed plan.

#include "base/result.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"

namespace spark::connect {
class Expression;
class Relation;
}  // namespace spark::connect

namespace fleuve::plan {

/// Analyzes a relation: names, types, coercion, star, metadata columns, aggregates, subqueries. Every message and every
/// field that is not served is refused by name.
/// Errors: Spark's analysis conditions. Depth: at most 10,000 levels; beyond it a clear error. Needs a thread with a
/// large stack for deep plans (the caller's duty: base/big_stack.h).
Result<PlanPtr> Analyze(const spark::connect::Relation& relation, Resolver& resolver);

/// Analyzes one expression over the output of `input` (replaceWhere, MERGE conditions, check constraints, partition
/// filters, generated columns).
Result<ExprPtr> AnalyzeExpression(const spark::connect::Expression& expression, const PlanPtr& input,
                                  Resolver& resolver);

/// Makes an analyzed batch plan ready to run: guards for expressions that can fail, filters pushed to the leaves and
/// files left out, constants folded, projections merged, kTable leaves planned into scans.
Result<PlanPtr> Prepare(const PlanPtr& plan, const AnalysisConfig& config);

}  // namespace fleuve::plan
