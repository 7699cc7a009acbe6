#pragma once

/// \file
/// CHAR(n) columns of tables: files keep values without filling, readers see them filled up with blanks.

#include <vector>

#include "plan/expr.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"

namespace fleuve::plan {

/// `plan` with its CHAR columns filled up; itself where it has none. Columns that are filled up have new
/// ids.
Result<PlanPtr> PadCharColumns(const PlanPtr& plan, const AnalysisConfig& config);
/// An expression over a table's raw columns with every CHAR column filled up (and what is filled up already unchanged).
Result<ExprPtr> PadCharAttributes(const ExprPtr& expr, const AnalysisConfig& config);
/// Operands of a comparison or IN: literals beside a CHAR column, and shorter CHAR columns beside longer ones, are
/// filled up.
Result<void> PadComparison(std::vector<ExprPtr>* operands, const AnalysisConfig& config);
/// True where `PadComparison` concerns the function.
bool ComparesChars(std::string_view function);

}  // namespace fleuve::plan
