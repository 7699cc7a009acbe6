#pragma once

/// \file
/// Finding the rows that a condition touches, and taking them out of their files: by deletion vectors, or by writing
/// the rest anew.

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "delta/snapshot.h"
#include "plan/logical_plan.h"
#include "tables/context.h"
#include "tables/data_files_internal.h"

namespace fleuve::tables {

/// A leaf over the whole table; its output has the table's columns.
plan::PlanPtr TableLeaf(const delta::SnapshotPtr& snapshot, const std::string& name);

/// What a scan of files gives beside the table's columns.
struct FileRowsOptions {
  /// Where each row stands.
  bool positions = false;
  /// The id and commit version of each row, where the table tracks rows.
  bool row_ids = false;
};
/// Rows of some files of the table. Output of `plan`: the attributes of the table's columns (ids kept), in the table's
/// order, then `file`, then `row` and `row_ids` where asked for.
struct FileRows {
  plan::PlanPtr plan;
  /// INT: the number of the file in the list.
  plan::Attribute file;
  /// BIGINT: the row's position in its file, deleted rows counted.
  plan::Attribute row;
  /// Row id and commit version (BIGINT); empty where the table does not track rows.
  std::vector<plan::Attribute> row_ids;
};
Result<FileRows> ScanFiles(const delta::SnapshotPtr& snapshot, const std::vector<delta::AddFile>& files,
                           const std::vector<plan::Attribute>& columns, const FileRowsOptions& options = {});

/// Ascending row numbers of a file.
using RowNumbers = std::vector<std::uint64_t>;

/// Rows of files that a run has found.
struct FoundRows {
  /// One list per file, ascending; rows that came more than once stand more than once.
  std::vector<RowNumbers> rows;
  /// Those whose code was not 0.
  std::vector<RowNumbers> changed;
  /// How often each code came.
  std::map<std::int32_t, std::int64_t> codes;
  /// The numbers of the fourth column that came.
  std::unordered_set<std::int64_t> numbers;
};
/// Runs `rows`: columns file INT, row BIGINT and, maybe, code INT and a number BIGINT; only the number may be NULL.
Result<FoundRows> CollectRows(const TableContext& context, const plan::PlanPtr& rows, std::size_t file_count);

/// What a condition does to a table's files.
struct TouchedFiles {
  /// Files with at least one matching row, and how many rows match and there are.
  struct File {
    delta::AddFile add;
    std::int64_t matching = 0;
    std::int64_t rows = 0;
    /// The matching rows, where positions were asked for and not every row matches.
    RowNumbers positions;
  };
  std::vector<File> files;
  /// All files that were looked at.
  std::vector<delta::AddFile> candidates;
};

/// \param columns  the attributes that `condition` refers to, one per table column.
Result<TouchedFiles> FindTouched(const TableContext& context, const delta::SnapshotPtr& snapshot,
                                 const std::vector<plan::Attribute>& columns, const plan::ExprPtr& condition,
                                 bool positions = false);

/// The removal of a file, as commits say it.
delta::RemoveFile RemovalOf(const delta::AddFile& add, std::int64_t now_ms, bool data_change);

/// True where DELETE, UPDATE or MERGE (`statement` in lower case) marks rows by deletion vectors: the table has them
/// enabled and the session does not ask for files written anew.
bool MarksRows(const TableContext& context, const delta::Snapshot& snapshot, std::string_view statement);

/// Rows taken out of files by deletion vectors: the commit's actions and what its metrics say.
struct MarkedRows {
  std::vector<delta::Action> actions;
  /// The new vectors' file; empty where every file went whole.
  std::string vector_file;
  std::int64_t removed_files = 0;
  std::int64_t removed_bytes = 0;
  std::int64_t vectors_added = 0;
  std::int64_t vectors_updated = 0;
  std::int64_t vectors_removed = 0;
};
/// \param rows  for each file of `files` the rows that go (besides those that are gone already); empty: none.
/// A file of which nothing is left is removed.
Result<MarkedRows> MarkRows(const TableContext& context, const delta::SnapshotPtr& snapshot,
                            const std::vector<delta::AddFile>& files, const std::vector<RowNumbers>& rows,
                            bool data_change);

/// A DELETE without its commit: files that go, files written anew with the rows that stay (or vectors), change files.
struct Rewrite {
  std::vector<delta::Action> actions;
  DataFiles written;
  DataFiles changes;
  std::vector<delta::AddFile> candidates;
  std::int64_t removed_files = 0;
  std::int64_t removed_bytes = 0;
  std::int64_t copied_rows = 0;
  std::int64_t deleted_rows = 0;
  std::int64_t vectors_added = 0;
  std::int64_t vectors_updated = 0;
  std::int64_t vectors_removed = 0;
};
Result<Rewrite> DeleteRows(const TableContext& context, const delta::SnapshotPtr& snapshot,
                           const std::vector<plan::Attribute>& columns, const plan::ExprPtr& condition,
                           bool data_change);

/// The columns of `rows` that files keep besides the table's: row ids of rows that are copied (`values` for other rows:
/// the commit version may be NULL, which means this commit). Puts fields behind `schema` and values behind `exprs`.
void AppendRowIds(const delta::Metadata& metadata, std::vector<plan::ExprPtr> values, std::vector<plan::ExprPtr>* exprs,
                  types::Schema* schema);

/// Tags of commits that keep row ids.
delta::StringMap RowTrackingTags(const delta::Snapshot& snapshot);

/// Change files that say `rows` (output: the table's columns) are of one kind: `insert`, `delete`. Their actions go
/// behind `actions`.
Result<DataFiles> WriteChangeFiles(const TableContext& context, const delta::SnapshotPtr& snapshot,
                                   const plan::PlanPtr& rows, const std::vector<plan::Attribute>& columns,
                                   const char* change_type, std::vector<delta::Action>* actions);

/// True where the table keeps a change feed.
bool KeepsChanges(const delta::Snapshot& snapshot);

}  // namespace fleuve::tables
