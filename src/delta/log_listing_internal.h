#pragma once

/// \file
/// What the names in a log folder say: commits, complete checkpoints, compactions.

#include <cstdint>
#include <string_view>
#include <vector>

#include "delta/checkpoint_internal.h"
#include "storage/object_store.h"

namespace fleuve::delta {

/// The version in a name's first twenty digits; -1 where they are none.
std::int64_t VersionOf(std::string_view name);
bool IsCommitName(std::string_view name);
std::string_view NameOf(const storage::ObjectMeta& meta);

/// `00000000000000000001.00000000000000000003.compacted.json`: the commits of both versions and those between as one.
struct CompactionFile {
  std::int64_t first = -1;
  std::int64_t last = -1;
};

struct LogListing {
  std::vector<storage::ObjectMeta> commits;  ///< by version
  std::vector<CheckpointFiles> checkpoints;  ///< complete ones, by version
  std::vector<CompactionFile> compactions;   ///< by first version, the longest of one version last
  bool has_incomplete = false;
  std::int64_t incomplete_version = -1;
};

LogListing SortLog(const std::vector<storage::ObjectMeta>& entries);

}  // namespace fleuve::delta
