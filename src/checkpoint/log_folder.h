#pragma once

/// \file
/// A folder of write-once text files named by numbers: the shape that offsets, commits, file source logs and schema
/// tracking logs share.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/object_store.h"

namespace fleuve::checkpoint {

/// One name in a log folder.
struct LogName {
  std::int64_t id = 0;
  /// `<id>.compact`.
  bool is_compact = false;
};

/// Threads: one caller at a time for one folder; nothing is synced (`PathOf` and `path()` name what must be).
///
/// Beside each file stands Hadoop's hidden checksum file (`.<name>.crc`), as Spark leaves it on local disks: a reader
/// that verifies checksums finds it right, and whoever removes a log entry by hand finds both.
class LogFolder {
 public:
  LogFolder(std::shared_ptr<storage::ObjectStore> store, std::string path)
      : store_(std::move(store)), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  const std::shared_ptr<storage::ObjectStore>& store() const { return store_; }
  std::string PathOf(std::string_view name) const { return path_ + "/" + std::string(name); }

  /// All entries, ascending by id; other names are ignored. A missing folder has none.
  /// \param remove_leftovers  deletes hidden `.tmp` files of writers that died.
  Result<std::vector<LogName>> List(bool remove_leftovers = false);
  /// kNotFound where the entry is missing.
  Result<std::string> Read(std::string_view name);
  /// Writes an entry under a hidden name and makes it visible whole. kAlreadyExists (CONCURRENT_STREAM_LOG_UPDATE)
  /// where it exists with other bytes; the same bytes are a lost answer and count as written.
  Result<void> Write(std::string_view name, std::string_view text);
  /// Removes an entry and its checksum file; a missing one is no error.
  Result<void> Remove(std::string_view name);
  /// Moves an entry to another folder (made where missing) under a name that is free there, and drops its checksum
  /// file. Returns the new path.
  Result<std::string> MoveAway(std::string_view name, const std::string& folder);

 private:
  std::shared_ptr<storage::ObjectStore> store_;
  std::string path_;
};

/// The content of Hadoop's checksum file for these bytes.
std::string HadoopChecksums(std::string_view bytes);

/// Splits a log text into its version (from the first line `v<n>`) and the lines after it.
struct LogText {
  int version = 0;
  std::vector<std::string> lines;
};
/// kCorrupt where the text is none: MALFORMED_LOG_FILE, or INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION for a version
/// above `max_version`; `Incomplete log file` for an empty text. Each sentence begins with `Failed to read log file
/// <path>.`
Result<LogText> ParseLogText(std::string_view text, int max_version, std::string_view path);

}  // namespace fleuve::checkpoint
