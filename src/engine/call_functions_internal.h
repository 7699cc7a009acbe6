#pragma once

/// \file
/// The few functions in DuckDB's catalog through which every function of ours is called.
///
/// `fleuve_call(arguments..., number)` and `fleuve_aggregate(arguments..., number)` stand for the call with that number
/// in the RunState: binding asks functions/ for the implementation. `fleuve_typed(x, NULL::T)` is x where it has type T
/// (integers are narrowed) and refuses the query otherwise.

#include "engine/duckdb_pch.h"

namespace fleuve::engine {

inline constexpr const char* kCallFunction = "fleuve_call";
inline constexpr const char* kAggregateFunction = "fleuve_aggregate";
inline constexpr const char* kTypedFunction = "fleuve_typed";
/// Raises SCALAR_SUBQUERY_TOO_MANY_ROWS when it is evaluated; its argument gives its type.
inline constexpr const char* kTooManyRowsFunction = "fleuve_too_many_rows";

/// The input of a lambda's body that counts the evaluations of the body, from 0: the place of functions that depend on
/// the row's place.
inline constexpr const char* kDrawInput = "draw";

void InstallCallFunctions(duckdb::DatabaseInstance& db);

}  // namespace fleuve::engine
