#pragma once

/// \file
/// The texts of `metadata`, `offsets/N` and `commits/N`, byte for byte as Spark writes them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fleuve::checkpoint {

/// `offsets/N`.
struct OffsetEntry {
  /// 1; 2 where the checkpoint was written so (it is kept).
  int version = 1;
  /// False: an empty metadata line, from very old versions.
  bool has_metadata = true;
  std::int64_t watermark_ms = 0;
  std::int64_t timestamp_ms = 0;
  /// Settings fixed with the batch, in the order written.
  std::vector<std::pair<std::string, std::string>> conf;
  /// One per source in plan order; nullopt is `-`.
  std::vector<std::optional<std::string>> offsets;
  /// Version 2: `sourceMetadataInfo` as found (JSON text); empty = absent.
  std::string source_info;

  const std::string* FindConf(std::string_view key) const;
};

/// `commits/N`.
struct CommitEntry {
  int version = 1;
  std::int64_t next_watermark_ms = 0;
  /// Version 2: `stateUniqueIds` as found (JSON text); empty = absent.
  std::string state_ids;
};

std::string EncodeOffsets(const OffsetEntry& entry);
std::string EncodeCommit(const CommitEntry& entry);
std::string EncodeMetadata(const std::string& query_id);

/// Errors as `ParseLogText`'s, and kCorrupt for lines that are none. \param path  for messages.
Result<OffsetEntry> DecodeOffsets(std::string_view text, std::string_view path);
Result<CommitEntry> DecodeCommit(std::string_view text, std::string_view path);
/// The query id. kCorrupt where the text has none.
Result<std::string> DecodeMetadata(std::string_view text, std::string_view path);

/// True where the text is empty or ends in the middle of what it began: what a power cut leaves of a file.
bool IsCutOff(std::string_view text, bool is_offsets);

}  // namespace fleuve::checkpoint
