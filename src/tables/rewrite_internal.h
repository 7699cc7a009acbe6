#pragma once

/// \file
/// Finding and rewriting the files that a condition touches.

#include <string>
#include <vector>

#include "base/result.h"
#include "delta/snapshot.h"
#include "plan/logical_plan.h"
#include "tables/context.h"
#include "tables/data_files_internal.h"

namespace fleuve::tables {

/// A leaf over the whole table; its output has the table's columns.
plan::PlanPtr TableLeaf(const delta::SnapshotPtr& snapshot, const std::string& name);

/// Rows of some files of the table. Output: the attributes of `columns` (ids kept), in the table's order, then the
/// number of the file in `files` (INT, name `__file`), then, where asked for, the row's number in its file (`__row`).
Result<plan::PlanPtr> ScanFiles(const delta::SnapshotPtr& snapshot, const std::vector<delta::AddFile>& files,
                                const std::vector<plan::Attribute>& columns);

/// What a condition does to a table's files.
struct TouchedFiles {
  /// Files with at least one matching row, and how many rows match and there are.
  struct File {
    delta::AddFile add;
    std::int64_t matching = 0;
    std::int64_t rows = 0;
  };
  std::vector<File> files;
  /// All files that were looked at.
  std::vector<delta::AddFile> candidates;
};

/// \param columns  the attributes that `condition` refers to, one per table column.
Result<TouchedFiles> FindTouched(const TableContext& context, const delta::SnapshotPtr& snapshot,
                                 const std::vector<plan::Attribute>& columns, const plan::ExprPtr& condition);

/// The removal of a file, as commits say it.
delta::RemoveFile RemovalOf(const delta::AddFile& add, std::int64_t now_ms, bool data_change);

/// A DELETE without its commit: files that go, files written anew with the rows that stay, change files.
struct Rewrite {
  std::vector<delta::Action> actions;
  DataFiles written;
  DataFiles changes;
  std::vector<delta::AddFile> candidates;
  std::int64_t removed_files = 0;
  std::int64_t removed_bytes = 0;
  std::int64_t copied_rows = 0;
  std::int64_t deleted_rows = 0;
};
Result<Rewrite> DeleteRows(const TableContext& context, const delta::SnapshotPtr& snapshot,
                           const std::vector<plan::Attribute>& columns, const plan::ExprPtr& condition,
                           bool data_change);

/// True where the table keeps a change feed.
bool KeepsChanges(const delta::Snapshot& snapshot);

}  // namespace fleuve::tables
