#pragma once

/// \file
/// `_delta_log/<version>.crc`: what a writer says of the table's state at a version, to be compared with the state that
/// a reader has rebuilt from the log.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "delta/snapshot_build.h"

namespace fleuve::delta {

struct VersionChecksum {
  std::int64_t table_size_bytes = 0;
  std::int64_t num_files = 0;
  /// nullopt: the file does not say.
  std::optional<Metadata> metadata;
  std::optional<Protocol> protocol;
  std::optional<std::vector<SetTransaction>> transactions;
  std::optional<std::vector<DomainMetadata>> domains;
};

/// Writes the checksum of a version that this process has committed. Nothing is synced: it is advice, and a power cut
/// may leave it empty.
Result<void> WriteVersionChecksum(const SnapshotState& state, const std::string& txn_id,
                                  std::optional<std::int64_t> in_commit_timestamp);

/// nullopt where the version has none, or none that can be read.
std::optional<VersionChecksum> ReadVersionChecksum(const storage::Location& table, std::int64_t version);
std::optional<VersionChecksum> ParseVersionChecksum(std::string_view text);

/// One text per thing that the state has otherwise than the checksum says.
std::vector<std::string> DifferencesFrom(const VersionChecksum& checksum, const SnapshotState& state);

/// DELTA_TXN_LOG_FAILED_INTEGRITY where the state's version has a checksum that says otherwise.
Result<void> CompareWithChecksum(const SnapshotState& state);

}  // namespace fleuve::delta
