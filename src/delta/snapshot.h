#pragma once

/// \file
/// The state of a table at one version: immutable, shared, cheap to derive from its predecessor.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "delta/features.h"
#include "plan/expr.h"
#include "storage/object_store.h"
#include "types/data_type.h"

namespace fleuve::delta {

class FileSet;
struct SnapshotState;

/// Threads: const methods from any thread.
class Snapshot {
 public:
  explicit Snapshot(std::shared_ptr<const SnapshotState> state) : state_(std::move(state)) {}

  std::int64_t version() const;
  /// The commit's time in milliseconds (in-commit timestamp, else the file's modification time made increasing).
  std::int64_t timestamp_ms() const;
  const storage::Location& location() const;
  const Metadata& metadata() const;
  const Protocol& protocol() const;
  /// The table's schema with its logical names; partition columns at their places. Void columns stay.
  const types::Schema& schema() const;
  /// Partition columns in partition order.
  const types::Schema& partition_schema() const;
  /// `configuration` value, or null.
  const std::string* Property(std::string_view key) const;
  bool BooleanProperty(std::string_view key, bool fallback) const;

  std::int64_t file_count() const;
  std::int64_t size_bytes() const;
  /// Sum of the files' numRecords less deletion vectors; -1 where some file has no statistics.
  std::int64_t row_count() const;

  /// Last transaction of `app_id` (expired ones are invisible).
  std::optional<SetTransaction> Transaction(std::string_view app_id) const;
  std::vector<SetTransaction> Transactions() const;
  /// Configuration of a domain that is not removed.
  std::optional<std::string> Domain(std::string_view domain) const;
  std::vector<DomainMetadata> Domains() const;

  /// Every active file, in no promised order. \param stats  false leaves `stats` empty (faster).
  void ForEachFile(const std::function<void(const AddFile&)>& visit, bool stats = true) const;
  std::vector<AddFile> AllFiles() const;
  /// Active files that may hold a row for which all `filters` are true: partition values and statistics are compared,
  /// everything that cannot be judged stays. \param columns  one attribute per field of `schema()`, same order.
  Result<std::vector<AddFile>> Files(const std::vector<plan::ExprPtr>& filters,
                                     const std::vector<plan::Attribute>& columns) const;
  /// The active file with this path as in the log, whatever its deletion vector; nullopt where there is none.
  std::optional<AddFile> FindFile(std::string_view path) const;
  /// Removed files that still count as tombstones.
  std::vector<RemoveFile> Tombstones() const;

  const SnapshotState& state() const { return *state_; }

 private:
  std::shared_ptr<const SnapshotState> state_;
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

}  // namespace fleuve::delta
