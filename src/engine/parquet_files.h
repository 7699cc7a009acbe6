#pragma once

/// \file
/// Single Parquet files for those who need no plan: Delta's checkpoints.

#include <memory>

#include "delta/parquet.h"

namespace fleuve::engine {

/// Both share one small instance of their own, opened at the first use. Threads: any.
std::shared_ptr<delta::ParquetReader> MakeParquetReader();
std::shared_ptr<delta::ParquetWriter> MakeParquetWriter();

}  // namespace fleuve::engine
