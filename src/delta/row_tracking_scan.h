#pragma once

/// \file
/// Row ids of scanned rows.

#include "delta/row_tracking.h"
#include "plan/expr.h"
#include "plan/scan.h"

namespace fleuve::delta {

/// Makes the scan read what row ids are made of: two hidden columns behind its data columns, two constants of each file
/// (`AppendRowIdConstants`) behind its constants, and the rows' positions.
void AddRowIdColumns(const MaterializedRowIds& names, plan::FileScan* scan);

/// The file's first row id and its commit version, behind the constants that it has.
void AppendRowIdConstants(const AddFile& add, plan::ScanFile* file);

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
