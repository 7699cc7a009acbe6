#pragma once

/// \file
/// Small plans over tables, and errors about them. Private to this room.

#include <memory>
#include <string>
#include <vector>

#include "plan/logical_plan.h"
#include "plan/resolver.h"
#include "session/resolver_internal.h"
#include "tables/context.h"

namespace fleuve::session {

/// A kTable leaf with fresh attributes.
plan::PlanPtr LeafOf(std::shared_ptr<const plan::TableSource> table, std::vector<std::string> qualifier);
/// A kRows leaf over batches of `schema`.
plan::PlanPtr RowsLeaf(const types::Schema& schema, std::vector<columnar::RecordBatch> batches);
/// The visible columns of `input` in the order, with the names and types of `schema`.
/// INSERT_COLUMN_ARITY_MISMATCH, INCOMPATIBLE_DATA_FOR_TABLE.* where they do not fit.
Result<plan::PlanPtr> FitColumns(const plan::PlanPtr& input, const types::Schema& schema, bool by_name,
                                 const plan::AnalysisConfig& config, const std::string& table);

tables::TableRef RefOf(const TableTarget& target);
Error TableExists(const std::string& display);
Error TempViewExists(const std::vector<std::string>& parts);
/// DATA_SOURCE_NOT_FOUND, or a refusal of `what` for a format that is known.
Error UnknownProvider(const std::string& format, const std::string& what);

}  // namespace fleuve::session
