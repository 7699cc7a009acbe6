#pragma once

/// \file
/// Decimal types of results and other coercion details that function builders need.

#include <optional>

#include "plan/coercion.h"

namespace fleuve::plan {

/// The decimal that holds every value of an integral type; (14,7) and (30,15) for float and double.
types::DataType DecimalForType(const types::DataType& type);
/// Both numbers capped at 38.
types::DataType BoundedDecimal(int precision, int scale);
/// Beyond 38 digits fraction digits go first.
types::DataType BoundedDecimalPreferIntegral(int precision, int scale);
/// Spark's adjustPrecisionScale: beyond 38 digits keeps at least six fraction digits.
types::DataType AdjustedDecimal(int precision, int scale);
/// Spark's findTightestCommonType.
std::optional<types::DataType> TightestCommonType(const types::DataType& a, const types::DataType& b,
                                                  const AnalysisConfig& config);

}  // namespace fleuve::plan
