#pragma once

/// \file
/// Checkpoints: whole states in Parquet (classic, in parts, v2), read and written.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delta/log.h"
#include "delta/snapshot_build.h"

namespace fleuve::delta {

/// One complete checkpoint found in a listing.
struct CheckpointFiles {
  std::int64_t version = -1;
  bool is_v2 = false;
  /// Names in the log folder: one, or all parts in order.
  std::vector<std::string> names;
};

/// The state that a checkpoint holds. DELTA_MISSING_PART_FILES, kCorrupt; kUnsupported without a Parquet reader.
Result<std::shared_ptr<SnapshotState>> LoadCheckpoint(const storage::Location& table, const LogContext& context,
                                                      const CheckpointFiles& files);

/// Paths of the sidecars that a checkpoint names, as it names them.
Result<std::vector<std::string>> SidecarsOf(const storage::Location& table, const LogContext& context,
                                            const CheckpointFiles& files);

/// Writes a checkpoint of `snapshot` and then `_last_checkpoint`, both durable.
Result<void> WriteCheckpoint(const Snapshot& snapshot, const LogContext& context, const CheckpointShape& shape);

}  // namespace fleuve::delta
