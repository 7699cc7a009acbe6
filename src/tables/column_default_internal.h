#pragma once

/// \file
/// Which values a column's type takes by Spark's rules: defaults, changes of the type.

#include <string>

#include "base/result.h"
#include "plan/resolver.h"
#include "types/data_type.h"

namespace fleuve::tables {

/// True where every value of `from` is one of `to`: Spark's rule for ALTER COLUMN TYPE and for defaults.
bool CanUpCast(const types::DataType& from, const types::DataType& to);
/// INVALID_DEFAULT_VALUE.* unless `sql` may be the default of a column.
Result<void> CheckDefault(const std::string& sql, const types::StructField& field, const plan::AnalysisConfig& config);
}  // namespace fleuve::tables
