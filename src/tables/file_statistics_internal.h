#pragma once

/// \file
/// The statistics of a data file as the log keeps them.

#include <cstdint>
#include <string>
#include <vector>

#include "delta/actions.h"
#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::tables {

/// A leaf whose statistics go into the log: names as in the files.
struct StatisticsLeaf {
  std::vector<std::string> path;
  types::DataType type;
};
/// The leaves that are indexed, by the table's properties.
std::vector<StatisticsLeaf> IndexedLeaves(const delta::Metadata& metadata, const types::Schema& schema);

/// True where the log keeps the least and greatest value of such a leaf.
bool HasBounds(const types::DataType& type);
/// True for a partition column of the table.
bool IsPartition(const delta::Metadata& metadata, const std::string& name);

/// NULL and -1 where unknown.
struct LeafStatistics {
  types::Value min;
  types::Value max;
  std::int64_t null_count = -1;
};
/// `add.stats`. \param values  one per leaf.
std::string StatisticsText(const std::vector<StatisticsLeaf>& leaves, std::int64_t row_count,
                           const std::vector<LeafStatistics>& values, bool tight_bounds);

}  // namespace fleuve::tables
