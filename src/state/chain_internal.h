#pragma once

/// \file
/// Which files make a version.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "state/changelog_internal.h"

namespace fleuve::state {

/// A file of a store's folder.
struct StoreFile {
  std::string path;
  FileName name;
  std::int64_t size_bytes = 0;
};
/// The files of the folder by ascending version; empty where there is none.
Result<std::vector<StoreFile>> ListFiles(const storage::Location& folder);

/// What must be read for a version, in this order.
struct Chain {
  /// With its attempt.
  Version version;
  /// The snapshot's last file and its parts.
  std::optional<StoreFile> snapshot;
  SnapshotParts parts;
  /// The changelogs after the version that the snapshot was begun at, by ascending version.
  std::vector<StoreFile> changes;
};
/// \param at  version 1 or more; where its attempt is empty, the folder has one only.
/// \param damaged  snapshots that are not to be used.
/// Errors: CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS, .UNEXPECTED_VERSION.
Result<Chain> FindChain(const StoreSpec& spec, const std::vector<StoreFile>& files, const Version& at,
                        const std::set<std::string>& damaged);

}  // namespace fleuve::state
