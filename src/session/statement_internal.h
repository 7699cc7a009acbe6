#pragma once

/// \file
/// What the statements share: result shapes, names of databases. Private to this room.

#include <string>
#include <vector>

#include "base/result.h"
#include "tables/context.h"
#include "types/data_type.h"

namespace fleuve::session {

/// No columns, no rows.
tables::RowsResult Nothing();
/// Nullable strings.
types::Schema TextColumns(const std::vector<std::string>& names);
/// col_name, data_type, comment; then the partition columns below their headline.
tables::RowsResult DescribeColumns(const types::Schema& schema, const std::vector<std::string>& partition_columns);
Error DatabaseNotFound(const std::vector<std::string>& parts);
/// `db` or `spark_catalog.db`, lower case.
Result<std::string> DatabaseOf(const std::vector<std::string>& parts);
/// SHOW ... LIKE: `*` any text, `|` alternatives, without case.
bool MatchesPattern(const std::string& name, const std::string& pattern);

}  // namespace fleuve::session
