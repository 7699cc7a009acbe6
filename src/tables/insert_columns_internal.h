#pragma once

/// \file
/// From the columns of a query to named columns of the table: by position or by name, with INSERT's lists and
/// partitions.

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"
#include "tables/write.h"

namespace fleuve::tables {

/// A column of the data under the name it has in the table (or would have).
struct NamedColumn {
  std::string name;
  plan::ExprPtr value;
};

/// \param schema  the table's; null: a new table.
/// \param widens  wider values stay as they are: the column's type will follow (type widening).
/// Casts are applied where the spec asks for store assignment; `*narrows` tells that one of them can overflow.
Result<std::vector<NamedColumn>> ResolveInputColumns(const plan::PlanPtr& input, const types::Schema* schema,
                                                     const std::vector<std::string>& partition_columns,
                                                     const WriteSpec& spec, const plan::AnalysisConfig& config,
                                                     bool widens, bool* narrows);

/// The columns of `schema` in order, computed from `columns`: a missing one is generated, its default, or NULL.
/// \param input  what the values of `columns` refer to. \param identities  false: identity columns stay NULL where they
/// are to be generated, for the caller to fill (`FillIdentities`).
Result<plan::PlanPtr> FillColumns(const plan::PlanPtr& input, const std::vector<NamedColumn>& columns,
                                  const types::Schema& schema, const plan::AnalysisConfig& config,
                                  bool identities = true);

}  // namespace fleuve::tables
