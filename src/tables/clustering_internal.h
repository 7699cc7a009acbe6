#pragma once

/// \file
/// The domain that names a table's clustering columns.

#include <string>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "delta/snapshot.h"
#include "types/data_type.h"

namespace fleuve::tables {

/// DELTA_COLUMN_NOT_FOUND_IN_SCHEMA, DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS,
/// DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED.
Result<delta::DomainMetadata> ClusteringDomain(const types::Schema& schema, const delta::Metadata& metadata,
                                               const std::vector<std::string>& columns);
/// Logical names of the clustering columns; empty where the table has none.
std::vector<std::string> ClusteringColumns(const delta::Snapshot& snapshot);

}  // namespace fleuve::tables
