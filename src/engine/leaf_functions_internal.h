#pragma once

/// \file
/// Table functions of leaves that are no files: `fleuve_rows(number)` and `fleuve_range(number)`; and `fleuve_metrics`,
/// through which the rows of a kMetrics node pass; and the samplers.

#include "engine/duckdb_pch.h"

namespace fleuve::engine {

void InstallLeafFunctions(duckdb::DatabaseInstance& db);
void InstallSampleFunctions(duckdb::DatabaseInstance& db);
/// `fleuve_external(number, rows)`: kExternal nodes.
void InstallExternalOperator(duckdb::DatabaseInstance& db);

}  // namespace fleuve::engine
