#pragma once

/// \file
/// `fleuve_chain(inputs..., number)`: the expressions of a long chain of projections (the RunState's chain with that
/// number), evaluated one after the other over one growing chunk; the result is a struct of those that are asked for.
///
/// A projection of DuckDB's holds a vector for every column that passes it: n columns that each build on the one
/// before cost n*n of them, here n.

#include "engine/duckdb_pch.h"

namespace fleuve::engine {

inline constexpr const char* kChainFunction = "fleuve_chain";

void InstallProjectionChain(duckdb::DatabaseInstance& db);

}  // namespace fleuve::engine
