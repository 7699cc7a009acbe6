#pragma once

/// \file
/// What a MERGE may not say.

#include "base/result.h"
#include "delta/snapshot.h"
#include "tables/modify.h"

namespace fleuve::tables {

/// Conditions and values without subqueries and aggregates, boolean and deterministic conditions, only the last clause
/// of a kind without one; a table that may be changed.
Result<void> CheckMerge(const MergeSpec& spec, const delta::Snapshot& snapshot);

}  // namespace fleuve::tables
