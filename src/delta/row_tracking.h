#pragma once

/// \file
/// Row tracking: stable row ids and the commit that last changed a row.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "delta/snapshot.h"

namespace fleuve::delta {

/// True where new files get row ids (the feature is supported and not suspended).
bool AssignsRowIds(const Protocol& protocol, const Metadata& metadata);
/// True where readers may ask for row ids and rewrites keep them (`delta.enableRowTracking`).
bool TracksRows(const Metadata& metadata);

/// Names of the hidden columns of files that keep the ids of rows which were copied from elsewhere.
struct MaterializedRowIds {
  std::string row_id;
  std::string commit_version;
};
/// nullopt where the table has none.
std::optional<MaterializedRowIds> MaterializedRowIdsOf(const Metadata& metadata);
/// Names them where row tracking is on and they have no names yet.
void NameMaterializedRowIds(Metadata* metadata);

/// The highest row id given out; -1 before the first.
std::int64_t RowIdHighWaterMark(const Snapshot* snapshot);
/// The high water mark that a commit's action says; nullopt for other actions.
std::optional<std::int64_t> RowIdHighWaterMark(const Action& action);
/// Gives every added file of a commit that has none yet its first row id and its commit version, and says the new high
/// water mark. DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS where a file's number of rows is not known.
Result<void> AssignRowIds(std::vector<Action>* actions, std::int64_t high_water_mark, std::int64_t version);

}  // namespace fleuve::delta
