#pragma once

/// \file
/// Taking away commit files that a checkpoint replaces and that are older than the log's retention.

#include "delta/log.h"

namespace fleuve::delta {

/// Called behind a finished checkpoint of `snapshot`. Nothing that a kept version needs is deleted.
Result<void> CleanUpLog(const Snapshot& snapshot, const LogContext& context);

}  // namespace fleuve::delta
