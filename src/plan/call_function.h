#pragma once

/// \file
/// A use of a function by the program itself.

#include <string>
#include <vector>

#include "plan/expr.h"
#include "plan/resolver.h"

namespace fleuve::plan {

/// The expression of a function of plain arguments (no lambdas, no names); errors are those of `BuildFunction`.
Result<ExprPtr> CallFunction(std::string name, std::vector<ExprPtr> arguments, const AnalysisConfig& config);

}  // namespace fleuve::plan
