#pragma once

/// \file
/// Identity columns: values counted on from the column's high water mark.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"
#include "tables/insert_columns_internal.h"
#include "types/data_type.h"

namespace fleuve::tables {

bool IsIdentity(const types::StructField& field);

/// Numbers of the identity columns that a write leaves to be counted.
/// DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED where it gives a value to one that is always generated.
Result<std::vector<std::size_t>> GeneratedIdentities(const std::vector<NamedColumn>& columns,
                                                     const types::Schema& schema);

/// `rows` (its first columns are those of `schema`) with the columns `generated` counted on, row by row.
plan::PlanPtr FillIdentities(const plan::PlanPtr& rows, const types::Schema& schema,
                             const std::vector<std::size_t>& generated);

/// The schema after `row_count` rows were counted: with new high water marks.
types::Schema AdvanceIdentities(const types::Schema& schema, const std::vector<std::size_t>& generated,
                                std::int64_t row_count);

/// `restored` with the high water marks of the identity columns that `current` has too where those are farther: what
/// was given once is not given again. Columns are matched by id where they are mapped, else by name.
types::Schema KeepFarthestMarks(const types::Schema& restored, const types::Schema& current);

/// A declared identity column must be BIGINT with a step, and neither generated nor a partition column.
Result<void> CheckIdentities(const types::Schema& schema, const std::vector<std::string>& partition_by);

}  // namespace fleuve::tables
