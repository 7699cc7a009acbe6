#pragma once

/// \file
/// The files of commits whose rows are changes (inserts, deletes, change files), as scans with the three change
/// columns.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "delta/log.h"
#include "plan/scan.h"

namespace fleuve::tables {

/// `_change_type`, `_commit_version`, `_commit_timestamp`.
std::vector<types::StructField> ChangeFields();
/// A read schema with the change columns at its end.
types::Schema WithChangeFields(const types::Schema& schema);
/// True where the table keeps a change feed.
bool FeedEnabled(const delta::Metadata& metadata);
/// DELTA_MISSING_CHANGE_DATA: `version` did not keep a feed.
Error MissingChangeData(std::int64_t start, std::int64_t end, std::int64_t version);

/// What the rows of a file are.
enum class ChangeKind { kInsert, kDelete, kChangeFile };

struct ChangeFile {
  ChangeKind kind = ChangeKind::kInsert;
  delta::AddFile file;
  /// A removed file whose partition values the log does not tell: it cannot be read.
  bool unreadable = false;
};

/// The files that tell the changes of one commit, in its order: the change files where it has any, else every added and
/// removed file that changes data; none for a MERGE that changed nothing.
std::vector<ChangeFile> ChangeFilesOf(const std::vector<delta::Action>& actions);

/// Collects files into two scans: whole files whose rows are all inserts or all deletes, and change files.
/// Threads: one at a time. `metadata` and `table` outlive it.
class ChangeScans {
 public:
  ChangeScans(const delta::Metadata& metadata, const storage::Location& table) : metadata_(metadata), table_(table) {}
  /// Once, before anything else.
  Result<void> Begin();
  /// Files of one commit. A file that is removed and added again gives the rows in which the two deletion vectors
  /// differ. DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA where a removed file cannot be read.
  Result<void> Add(const std::vector<const ChangeFile*>& files, std::int64_t version, std::int64_t timestamp_ms);

  plan::FileScan& whole_files() { return plain_; }
  plan::FileScan& change_files() { return changes_; }

 private:
  Result<void> Put(const delta::AddFile& add, const char* type, std::int64_t version, std::int64_t timestamp_ms);
  Result<void> PutRows(delta::AddFile add, std::vector<std::uint64_t> rows, const char* type, std::int64_t version,
                       std::int64_t timestamp_ms);

  const delta::Metadata& metadata_;
  const storage::Location& table_;
  plan::FileScan plain_;
  plan::FileScan changes_;
};

}  // namespace fleuve::tables
