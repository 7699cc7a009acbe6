#pragma once

/// \file
/// Table functions over explicit lists of Parquet files: `fleuve_parquet(number as text)`, and
/// `fleuve_parquet_counted`, which filters nothing inside the reader and counts every row it gives.

#include "engine/duckdb_pch.h"

namespace fleuve::engine {

void InstallParquetScan(duckdb::DatabaseInstance& db);

}  // namespace fleuve::engine
