#pragma once

/// \file
/// Which values may be the default of a column.

#include <string>

#include "base/result.h"
#include "plan/resolver.h"
#include "types/data_type.h"

namespace fleuve::tables {

/// INVALID_DEFAULT_VALUE.* unless `sql` may be the default of a column.
Result<void> CheckDefault(const std::string& sql, const types::StructField& field, const plan::AnalysisConfig& config);
}  // namespace fleuve::tables
