#pragma once

/// \file
/// Typed conditions as SQL text that can be parsed again. Private to this room.

#include <string>

#include "base/result.h"
#include "plan/expr.h"

namespace fleuve::session {

/// Comparisons, AND, OR, NOT, IN, IS NULL, casts, columns and literals; kUnsupported for anything else.
Result<std::string> ExprSql(const plan::ExprPtr& expr);

}  // namespace fleuve::session
