#pragma once

/// \file
/// Which files a stream has planned: numbered segment files in the checkpoint, one per batch.
///
/// `sources/<i>/fleuve-files/start` says how the stream began; `existing` holds the files that were there then and are
/// not to be read; `<n>` holds the files with sequence numbers n, n+1, ...: one line of JSON each after a line `v1`.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "connectors/files/file_listing.h"
#include "connectors/source.h"
#include "storage/object_store.h"

namespace fleuve::connectors::autoloader {

struct LedgerEntry {
  std::string path;
  std::int64_t size_bytes = 0;
  std::int64_t modified_nanos = 0;
  std::int64_t discovered_ms = 0;
};

/// Threads: one at a time.
class Ledger {
 public:
  Ledger(std::shared_ptr<storage::ObjectStore> store, std::string source_folder)
      : store_(std::move(store)), folder_(std::move(source_folder) + "/fleuve-files") {}

  /// Reads all segments; false where the stream has never started.
  Result<bool> Open();
  /// Files that were seen before this time may be read again; their numbers stay.
  void ForgetBefore(std::int64_t discovered_ms);
  /// Records the first start. \param existing  files that are never to be read.
  Result<void> Start(bool include_existing, const std::vector<files::ListedFile>& existing, std::int64_t now_ms);
  /// The last sequence number given out; 0: none.
  std::int64_t last() const { return last_; }
  /// Whether the file is still to be read. \param overwrites  a newer modification time makes it new again.
  bool IsNew(const files::ListedFile& file, bool overwrites) const;
  /// Makes the files the next batch; returns its last sequence number.
  Result<std::int64_t> Append(const std::vector<files::ListedFile>& files, std::int64_t now_ms);
  /// The end of the first segment after `sequence`; nullopt where there is none.
  std::optional<std::int64_t> SegmentEndAfter(std::int64_t sequence) const;
  /// Files with numbers in (after, to].
  Result<std::vector<LedgerEntry>> Range(std::int64_t after, std::int64_t to);
  DurableRecords TakeDurableRecords();

 private:
  struct Known {
    std::int64_t modified_nanos = 0;
    std::int64_t discovered_ms = 0;
  };
  void Remember(const std::string& path, std::int64_t modified_nanos, std::int64_t discovered_ms);
  Result<std::vector<LedgerEntry>> ReadSegment(const std::string& name);
  Result<void> Write(const std::string& name, const std::string& text);
  /// Notes a file, and the folders above it, for `TakeDurableRecords`.
  void AddUnsynced(const std::string& path);

  std::shared_ptr<storage::ObjectStore> store_;
  const std::string folder_;
  /// First sequence number -> number of files.
  std::map<std::int64_t, std::int64_t> segments_;
  std::unordered_map<std::string, Known> known_;
  std::int64_t last_ = 0;
  DurableRecords unsynced_;
};

std::string OffsetText(std::int64_t sequence, const std::string& path_uri);
Result<std::int64_t> SequenceOf(const Offset& offset);

/// When batches of a source were committed: last sequence number and time in milliseconds, ascending.
Result<std::vector<std::pair<std::int64_t, std::int64_t>>> CommitTimes(const storage::Location& checkpoint, int index);

}  // namespace fleuve::connectors::autoloader
