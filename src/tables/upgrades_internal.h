#pragma once

/// \file
/// Properties whose change needs work on the table's files first.

#include "base/result.h"
#include "delta/actions.h"
#include "tables/context.h"

namespace fleuve::tables {

/// Column mapping is switched off: files are written anew under the columns' own names, and `properties` are set in the
/// same commit. DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING where a name needs the mapping.
Result<void> RemoveColumnMapping(const TableContext& context, const TableRef& table,
                                 const delta::StringMap& properties);

/// Row tracking is about to be switched on: the table gets the feature, and all its files get row ids.
Result<void> BackfillRowIds(const TableContext& context, const TableRef& table);

}  // namespace fleuve::tables
