#pragma once

/// \file
/// Spark's implicit conversions (ANSI and not): common types and the casts that bring them about.

#include <optional>
#include <vector>

#include "plan/expr.h"
#include "plan/resolver.h"

namespace fleuve::plan {

/// The type that holds both without loss, as Spark's findWiderTypeForTwo under ANSI rules; nullopt where there is none.
std::optional<types::DataType> WiderType(const types::DataType& a, const types::DataType& b,
                                         const AnalysisConfig& config);
std::optional<types::DataType> WiderType(const std::vector<types::DataType>& types, const AnalysisConfig& config);
/// True where Spark casts `from` to `to` implicitly for a function argument.
bool CanImplicitlyCast(const types::DataType& from, const types::DataType& to, const AnalysisConfig& config);
/// True where an explicit cast exists.
bool CanCast(const types::DataType& from, const types::DataType& to, const AnalysisConfig& config);
/// True where every value of `from` is one of `to` (Spark's Cast.canUpCast): defaults, ALTER COLUMN TYPE.
bool CanUpCast(const types::DataType& from, const types::DataType& to);
/// True where a value may be stored into a column by Spark's ANSI store assignment.
bool CanStoreAssign(const types::DataType& from, const types::DataType& to);
/// `expr` cast to `type` by the session's mode (ANSI or legacy); `expr` itself where the types are equal but for
/// nullability. Keeps the display text. kInvalidArgument DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION where no cast
/// exists.
Result<ExprPtr> MakeCast(const ExprPtr& expr, const types::DataType& type, const AnalysisConfig& config);
Result<ExprPtr> MakeCast(const ExprPtr& expr, const types::DataType& type, CastMode mode, const AnalysisConfig& config);

}  // namespace fleuve::plan
