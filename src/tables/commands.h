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

/// DESCRIBE HISTORY, newest first. \param limit  0 = all.
Result<RowsResult> DescribeHistory(const TableContext& context, const TableRef& table, std::int64_t limit);
/// DESCRIBE DETAIL: one row.
Result<RowsResult> DescribeDetail(const TableContext& context, const TableRef& table);

/// ALTER TABLE SET / UNSET TBLPROPERTIES.
Result<void> SetProperties(const TableContext& context, const TableRef& table, const plan::Options& properties);
Result<void> UnsetProperties(const TableContext& context, const TableRef& table, const std::vector<std::string>& keys,
                             bool if_exists);
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

/// ALTER TABLE CLUSTER BY (none: empty).
Result<void> SetClustering(const TableContext& context, const TableRef& table, const std::vector<std::string>& columns);

struct OptimizeSpec {
  std::optional<std::string> where;
  std::vector<std::string> zorder_by;
};
Result<RowsResult> Optimize(const TableContext& context, const TableRef& table, const OptimizeSpec& spec);
Result<RowsResult> Vacuum(const TableContext& context, const TableRef& table, std::optional<double> retention_hours,
                          bool dry_run);
Result<RowsResult> Restore(const TableContext& context, const TableRef& table, const delta::TimeTravel& when);

}  // namespace fleuve::tables
