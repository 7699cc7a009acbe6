#pragma once

/// \file
/// Rows and bounds of data files, found by reading them.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "tables/context.h"
#include "tables/file_statistics_internal.h"

namespace fleuve::tables {

struct FileMeasure {
  /// Deleted rows count.
  std::int64_t rows = 0;
  /// One per leaf.
  std::vector<LeafStatistics> leaves;
};

/// Reads `files` (deletion vectors are left out of account). \param leaves  of columns that lie in the files, by their
/// names there.
Result<std::vector<FileMeasure>> MeasureFiles(const TableContext& context, const storage::Location& table,
                                              const delta::Metadata& metadata, const std::vector<delta::AddFile>& files,
                                              const std::vector<StatisticsLeaf>& leaves);

}  // namespace fleuve::tables
