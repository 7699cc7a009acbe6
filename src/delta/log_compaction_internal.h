#pragma once

/// \file
/// Log compaction files: several commits as one, for tables whose checkpoints are too dear to be written often.

#include <cstdint>
#include <functional>

#include "delta/log.h"

namespace fleuve::delta {

/// What is left of these commits' actions, in the form of one commit: the newest of each file (path and vector),
/// application and domain, the last metadata and protocol; no commit information and no changes.
std::vector<Action> Compact(const std::vector<std::vector<Action>>& commits);

/// Whether each file (path and vector) stands in the actions once, as the protocol asks of a compaction. In one that
/// repeats a file the order would tell which action counts, and writers do not agree on the order.
bool IsReconciled(const std::vector<Action>& actions);

/// `<first>.<last>.compacted.json` below a table path.
std::string CompactionPath(std::string_view table_path, std::int64_t first, std::int64_t last);

/// Writes the compaction of `first` to `last`. One that is there already stays.
Result<void> WriteCompaction(DeltaLog& log, std::int64_t first, std::int64_t last);

}  // namespace fleuve::delta
