#pragma once

/// \file
/// The files of a store: changelogs, snapshots and parts of snapshots, one format.
///
///   fleuve state 1\n
///   {"kind":"changes","version":8,"attempt":"..","base":"..","nextWatermarkMs":..}   spaces may follow\n
///   records: space and kind (byte: 2 * space, + 1 for a removal), key length (varint), key[, value length, value]
///   eight bytes: HashBytes of everything before, little-endian
///
/// A snapshot is collected while batches go on: each of its rows is as it was in some version from `from` to the
/// snapshot's own. The changes after `from`, put on top in their order, make any version from the snapshot's own on.
/// Rows that do not fit its last file lie in parts that the last file names:
///
///   {"kind":"snapshot","version":9,"attempt":"..","from":8,"parts":2,"partsId":"..","spaceRows":[..]}

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "state/store.h"

namespace fleuve::state {

/// At most so many spaces fit the format.
inline constexpr std::size_t kMostSpaces = 127;

std::string ChangelogPath(const std::string& folder, const Version& version);
std::string SnapshotPath(const std::string& folder, const Version& version);

std::string PartPath(const std::string& folder, std::int64_t from, const std::string& id, std::int64_t part);

enum class FileKind { kChanges, kSnapshot, kPart };

/// A file name of any kind; `number` -1 where it is none. Of a part, the version that its snapshot was begun at.
struct FileName {
  Version version{-1, ""};
  FileKind kind = FileKind::kChanges;
};
FileName ParseFileName(std::string_view name);

/// What belongs to a snapshot beside the rows in its last file.
struct SnapshotParts {
  /// The version that it was begun at.
  std::int64_t from = 0;
  std::int64_t count = 0;
  std::string id;
  /// Rows of each space, about; empty: not known.
  std::vector<std::int64_t> space_rows;
};

/// Appends one record.
void AppendPut(std::string& out, SpaceId space, std::string_view key, std::string_view value);
void AppendRemoval(std::string& out, SpaceId space, std::string_view key);

/// Room for the first lines of a changelog, which are known last: records are added behind it.
inline constexpr std::size_t kHeadRoom = 512;
/// Writes the first lines over the first `kHeadRoom` bytes.
void SetHead(const ChangelogHeader& header, std::string& file);
/// The first lines of a part or a snapshot.
std::string PartHead();
std::string SnapshotHead(const Version& version, const SnapshotParts& parts);
/// 64 bits that depend on every byte; the same in every process.
std::uint64_t HashBytes(std::string_view bytes);
/// Adds the check sum.
inline constexpr std::size_t kCheckBytes = 8;
void EndFile(std::string& file);

/// What the first lines of a file say.
struct FileHead {
  ChangelogHeader header;
  FileKind kind = FileKind::kChanges;
  /// Of a snapshot.
  SnapshotParts parts;
};
/// Reads them alone; nullopt where the file is cut off in them or not there.
Result<std::optional<FileHead>> ReadHead(storage::ObjectStore& store, const std::string& path);

struct ParsedFile : FileHead {
  /// Into the text that was parsed.
  std::string_view records;
};
/// CANNOT_LOAD_STATE_STORE.* (kCorrupt) where the text is cut off, damaged or not ours. \param path  for messages.
Result<ParsedFile> ParseFile(std::string_view text, const std::string& path);

struct Record {
  SpaceId space = 0;
  bool is_removal = false;
  std::string_view key;
  std::string_view value;
};
/// The records of a file, in order.
class RecordReader {
 public:
  /// \param path  for messages.
  RecordReader(std::string_view records, std::size_t spaces, std::string path)
      : records_(records), spaces_(spaces), path_(std::move(path)) {}
  /// False at the end. kCorrupt where a record is cut off.
  Result<bool> Next(Record* record);

 private:
  std::string_view records_;
  std::size_t spaces_;
  std::string path_;
};

/// `_metadata`: written once per store. What was written is added to `files`.
Result<void> WriteMetadata(const StoreSpec& spec, StagedFiles* files);
/// Compares the folder's schema with the spec's.
Result<void> CheckSchema(const StoreSpec& spec);

}  // namespace fleuve::state
