#pragma once

/// \file
/// Spark's compacted logs of files: `sources/<i>/<n>` of the file source and `_spark_metadata/<n>` of the file sink.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/log_folder.h"
#include "connectors/source.h"

namespace fleuve::connectors::files {

/// One log folder of lines, compacted every so many entries. Threads: one at a time.
class FileLog {
 public:
  /// \param compact_interval  used where the folder does not show another one.
  FileLog(std::shared_ptr<storage::ObjectStore> store, std::string folder, std::int64_t compact_interval);

  /// Reads the names; must be called first. KD002 errors for logs of newer versions.
  Result<void> Open();
  /// The newest entry's number, -1 where there is none.
  std::int64_t newest() const { return newest_; }
  /// Lines of one entry (of a compact file: all its lines).
  Result<std::vector<std::string>> Read(std::int64_t id);
  /// All lines since the beginning (newest compact file, then later entries).
  Result<std::vector<std::string>> ReadAll();
  /// True where entry `id` is to be written as a compact file.
  bool IsCompaction(std::int64_t id) const { return (id + 1) % interval_ == 0; }
  /// Writes entry newest()+1 or, for sinks, any greater id. `lines`: the entry's own; older ones are added in a compact
  /// file. CONCURRENT_STREAM_LOG_UPDATE where it exists with another content.
  Result<void> Append(std::int64_t id, const std::vector<std::string>& lines);
  /// Removes entries that a compact file older than the last `keep` entries has made needless and that are older than
  /// `delay_ms`.
  Result<void> DeleteExpired(std::int64_t keep, std::int64_t delay_ms, std::int64_t now_ms);
  /// What was written since the last call.
  DurableRecords TakeDurableRecords();

 private:
  std::string NameOf(std::int64_t id) const;
  void FindInterval();
  /// Notes an entry, and the folders above it, for `TakeDurableRecords`.
  void AddUnsynced(const std::string& name);

  checkpoint::LogFolder log_;
  std::int64_t interval_;
  std::int64_t newest_ = -1;
  /// id -> is compact
  std::map<std::int64_t, bool> entries_;
  DurableRecords unsynced_;
};

}  // namespace fleuve::connectors::files
