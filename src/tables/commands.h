#pragma once

/// \file
/// Looking at a table and changing what it is: history, detail, properties, columns, constraints, maintenance.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "delta/table_source.h"
#include "plan/logical_plan.h"
#include "tables/context.h"

namespace fleuve::tables {

/// DESCRIBE HISTORY, newest first. \param limit  nullopt = all.
Result<RowsResult> DescribeHistory(const TableContext& context, const TableRef& table,
                                   std::optional<std::int64_t> limit);
/// DESCRIBE DETAIL: one row.
Result<RowsResult> DescribeDetail(const TableContext& context, const TableRef& table);

/// ALTER TABLE SET / UNSET TBLPROPERTIES.
Result<void> SetProperties(const TableContext& context, const TableRef& table, const plan::Options& properties);
Result<void> UnsetProperties(const TableContext& context, const TableRef& table, const std::vector<std::string>& keys);
/// Where a new or moved column goes.
struct ColumnPosition {
  bool first = false;
  std::string after;  ///< empty: at the end
};
struct NewColumn {
  std::vector<std::string> path;
  types::DataType type;
  bool nullable = true;
  std::optional<std::string> comment;
  std::optional<std::string> default_sql;
  ColumnPosition position;
};
Result<void> AddColumns(const TableContext& context, const TableRef& table, const std::vector<NewColumn>& columns);
Result<void> RenameColumn(const TableContext& context, const TableRef& table, const std::vector<std::string>& path,
                          const std::string& name);
Result<void> DropColumns(const TableContext& context, const TableRef& table,
                         const std::vector<std::vector<std::string>>& paths, bool if_exists);
/// REPLACE COLUMNS: the order, the comments and new columns; every column of before must be among `columns`, its type
/// as it was.
Result<void> ReplaceColumns(const TableContext& context, const TableRef& table, const std::vector<NewColumn>& columns);
/// ALTER COLUMN: what is set changes.
struct ColumnChange {
  std::vector<std::string> path;
  std::optional<types::DataType> type;
  std::optional<bool> nullable;
  std::optional<std::string> comment;
  std::optional<std::string> set_default;
  bool drop_default = false;
  std::optional<ColumnPosition> position;
};
Result<void> AlterColumn(const TableContext& context, const TableRef& table, const ColumnChange& change);
Result<void> AddConstraint(const TableContext& context, const TableRef& table, const std::string& name,
                           const std::string& sql);
Result<void> DropConstraint(const TableContext& context, const TableRef& table, const std::string& name,
                            bool if_exists);
/// COMMENT ON TABLE, ALTER TABLE SET TBLPROPERTIES ('comment' = ...).
Result<void> SetComment(const TableContext& context, const TableRef& table, const std::optional<std::string>& comment);

/// Logical names of the clustering columns of a table; empty where it has none.
std::vector<std::string> ClusteringOf(const delta::Snapshot& snapshot);
/// ALTER TABLE CLUSTER BY (none: empty).
Result<void> SetClustering(const TableContext& context, const TableRef& table, const std::vector<std::string>& columns);

/// ALTER COLUMN ... SYNC IDENTITY: the high water mark follows the values that are there.
Result<void> SyncIdentity(const TableContext& context, const TableRef& table, const std::vector<std::string>& path);

/// ALTER TABLE DROP FEATURE. DELTA_FEATURE_DROP_* where the feature is unknown, not there, cannot be dropped or still
/// in use.
Result<void> DropFeature(const TableContext& context, const TableRef& table, const std::string& feature,
                         bool truncate_history);

struct OptimizeSpec {
  std::optional<std::string> where;
  std::vector<std::string> zorder_by;
  /// OPTIMIZE ... FULL: files that are clustered already are clustered anew.
  bool full = false;
  /// REORG ... APPLY (PURGE): only files with deleted rows, each of them.
  bool purge = false;
  /// Every file, whatever its size.
  bool rewrite_all = false;
};
Result<RowsResult> Optimize(const TableContext& context, const TableRef& table, const OptimizeSpec& spec);
/// \param lite  only files that the log says were removed are looked at, not the table's folder.
/// DELTA_CANNOT_VACUUM_LITE where commits that said so are gone.
Result<RowsResult> Vacuum(const TableContext& context, const TableRef& table, std::optional<double> retention_hours,
                          bool dry_run, bool lite = false);
Result<RowsResult> Restore(const TableContext& context, const TableRef& table, const delta::TimeTravel& when);

/// What is wrong with a table: columns `kind` (log, file, vector, statistics), `path`, `problem`. No rows: all is well.
/// Reads every data file where `read_data`.
Result<RowsResult> CheckTable(const TableContext& context, const TableRef& table, bool read_data);
/// Takes files that do not exist any more out of the table. Rows: their paths.
Result<RowsResult> RepairTable(const TableContext& context, const TableRef& table, bool dry_run);

struct CloneSpec {
  /// The version that is cloned, and its table as the history names it.
  delta::SnapshotPtr source;
  std::string source_name;
  /// Properties set on the clone besides the source's.
  plan::Options properties;
  bool replace = false;
};
/// The columns of CloneTable's result.
types::Schema CloneResultSchema();
/// Shallow clone: a table of its own that begins with the files of the source. DELTA_UNSUPPORTED_NON_EMPTY_CLONE where
/// the target has rows.
Result<RowsResult> CloneTable(const TableContext& context, const TableRef& table, const CloneSpec& spec);

struct ConvertSpec {
  /// Types of the partition columns that the folders name; their order is that of the folders.
  types::Schema partition_schema;
  bool statistics = true;
};
/// CONVERT TO DELTA of a folder of Parquet files. A folder that is a Delta table already stays as it is.
Result<void> ConvertToDelta(const TableContext& context, const TableRef& table, const ConvertSpec& spec);

/// GENERATE symlink_format_manifest. DELTA_MODE_NOT_SUPPORTED for other modes.
Result<void> GenerateManifest(const TableContext& context, const TableRef& table, const std::string& mode);

}  // namespace fleuve::tables
