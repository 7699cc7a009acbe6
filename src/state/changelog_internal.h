#pragma once

/// \file
/// The files of a store: changelogs and snapshots, one format.
///
///   fleuve state 1\n
///   {"kind":"changes","version":8,"attempt":"..","base":"..","nextWatermarkMs":..,"rows":..}\n
///   records: space and kind (byte: 2 * space, + 1 for a removal), key length (varint), key[, value length, value]
///   eight bytes: HashBytes of everything before, little-endian

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "state/store.h"

namespace fleuve::state {

/// At most so many spaces fit the format.
inline constexpr std::size_t kMostSpaces = 127;

std::string ChangelogPath(const std::string& folder, const Version& version);
std::string SnapshotPath(const std::string& folder, const Version& version);

/// A file name of either kind; `number` -1 where it is none.
struct FileName {
  Version version{-1, ""};
  bool is_snapshot = false;
};
FileName ParseFileName(std::string_view name);

/// Appends one record.
void AppendPut(std::string& out, SpaceId space, std::string_view key, std::string_view value);
void AppendRemoval(std::string& out, SpaceId space, std::string_view key);

/// The first lines of a file; `rows` records follow.
std::string BeginFile(bool is_snapshot, const ChangelogHeader& header, std::int64_t rows);
/// Adds the check sum.
void EndFile(std::string& file);

struct ParsedFile {
  ChangelogHeader header;
  bool is_snapshot = false;
  /// Into the text that was parsed.
  std::string_view records;
};
/// CANNOT_LOAD_STATE_STORE.* (kCorrupt) where the text is cut off, damaged or not ours. \param path  for messages.
Result<ParsedFile> ParseFile(std::string_view text, const std::string& path);
/// Calls `put` and `remove` for each record, in order.
Result<void> ReadRecords(std::string_view records, const std::string& path, std::size_t spaces,
                         const std::function<void(SpaceId, std::string_view, std::string_view)>& put,
                         const std::function<void(SpaceId, std::string_view)>& remove);

/// `_metadata`: written once per store. What was written is added to `files`.
Result<void> WriteMetadata(const StoreSpec& spec, StagedFiles* files);
/// Compares the folder's schema with the spec's.
Result<void> CheckSchema(const StoreSpec& spec);

}  // namespace fleuve::state
