#pragma once

/// \file
/// Tables whose rows have ids of their own: `_metadata` has more fields then.

#include <memory>
#include <vector>

#include "plan/scan.h"

namespace fleuve::plan {

/// What a `TableSource` may be besides.
class RowIdSource {
 public:
  virtual ~RowIdSource() = default;
  virtual bool has_row_ids() const = 0;
  /// As `TableSource::PlanScan`, with more: the last two data columns are the ids and commit versions that files keep
  /// (BIGINT, NULL where they are counted), the constants are the file's first id and its commit version (BIGINT), and
  /// the row index is asked for.
  virtual Result<std::shared_ptr<const FileScan>> PlanRowIdScan(const std::vector<ExprPtr>& filters,
                                                                const std::vector<Attribute>& columns) const = 0;
};

/// Null where the table has no row ids.
const RowIdSource* RowIdsOf(const TableSource& table);
/// `MetadataColumnType()` and row_id, base_row_id, default_row_commit_version, row_commit_version (BIGINT).
types::DataType RowIdMetadataType();

}  // namespace fleuve::plan
