#pragma once

/// \file
/// The order in which OPTIMIZE puts rows that shall be near each other in several columns at once.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"
#include "tables/context.h"

namespace fleuve::tables {

/// Keys to sort `rows` by: the place on a Z-shaped curve through the ranks of `columns`, then the columns themselves.
/// Ranks are those of a sample: about `kSampleRows` rows are read and sorted once per column. One column alone is its
/// own order.
/// \param rows      has `columns` and `position` among its output.
/// \param columns   attributes of orderable types. \param position  BIGINT, the place of a row in its file.
/// \param row_count how many rows there are, about; less than 1 = unknown.
Result<std::vector<plan::SortKey>> CurveOrder(const TableContext& context, const plan::PlanPtr& rows,
                                              const std::vector<plan::Attribute>& columns,
                                              const plan::Attribute& position, std::int64_t row_count);

}  // namespace fleuve::tables
