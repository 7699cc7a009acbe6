#pragma once

/// \file
/// Row ids of scanned rows.

#include "delta/row_tracking.h"
#include "plan/expr.h"
#include "plan/scan.h"

namespace fleuve::delta {

/// Puts the two hidden columns behind the scan's data columns.
void AddRowIdColumns(const MaterializedRowIds& names, plan::FileScan* scan);

struct RowIdValues {
  plan::ExprPtr row_id;
  plan::ExprPtr commit_version;
};
/// What a row's id and commit version are: kept in the file, or counted from the file's first id.
/// \param position  the row's position in its file.
RowIdValues RowIdValuesOf(const plan::ExprPtr& kept_id, const plan::ExprPtr& kept_version,
                          const plan::ExprPtr& base_row_id, const plan::ExprPtr& default_version,
                          const plan::ExprPtr& position);

}  // namespace fleuve::delta
