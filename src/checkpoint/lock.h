#pragma once

/// \file
/// One process at a time on one checkpoint.

#include <memory>
#include <string>

#include "base/result.h"
#include "storage/object_store.h"

namespace fleuve::checkpoint {

/// Held while a query runs; given back when it dies, or by the system when the process ends.
class CheckpointLock {
 public:
  virtual ~CheckpointLock() = default;
  /// False once somebody else has taken the lock over (stores without locks of an operating system).
  virtual Result<bool> StillHeld() { return true; }
};

/// Takes `<checkpoint>/.fleuve/lock`. FLEUVE_CHECKPOINT_IN_USE (kConflict) names the host and process that hold it.
/// \param checkpoint  its folder exists.
Result<std::unique_ptr<CheckpointLock>> LockCheckpoint(const storage::Location& checkpoint);

}  // namespace fleuve::checkpoint
