#pragma once

/// \file
/// The state of a query read as a table: `spark.read.format("statestore")` and `format("state-metadata")`.

#include <memory>

#include "base/result.h"
#include "plan/scan.h"

namespace fleuve::operators {

/// The rows of one operator after one batch: key struct, value struct, partition_id int (one partition: 0).
/// Options: path (the checkpoint), operatorId (0), batchId (the newest committed one), storeName (default). Others are
/// refused by name. STDS_REQUIRED_OPTION_UNSPECIFIED, STDS_INVALID_OPTION_VALUE.*, STDS_COMMITTED_BATCH_UNAVAILABLE,
/// CANNOT_LOAD_STATE_STORE.*.
Result<std::shared_ptr<const plan::TableSource>> OpenStateTable(const plan::Options& options);

/// One row per operator: operatorId, operatorName, stateStoreName, numPartitions, minBatchId, maxBatchId,
/// operatorProperties.
Result<std::shared_ptr<const plan::TableSource>> OpenStateMetadata(const plan::Options& options);

}  // namespace fleuve::operators
