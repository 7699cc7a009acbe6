#pragma once

/// \file
/// Rows of a plan into data files with statistics, and the constraints that every row must keep.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "plan/logical_plan.h"
#include "tables/context.h"

namespace fleuve::tables {

/// A condition that must be true for every row written, and what is said where it is not.
struct RowConstraint {
  plan::ExprPtr condition;
  Error error;
};

struct DataFiles {
  std::vector<delta::AddFile> adds;
  /// Absolute paths, and the folders that gained a name.
  std::vector<std::string> files;
  std::vector<std::string> folders;
  std::int64_t row_count = 0;
  std::int64_t bytes = 0;
  /// Files on disk; one without rows is not among `adds`.
  std::int64_t written_files = 0;
};

struct DataFileOptions {
  std::string compression = "snappy";
  std::int64_t max_file_rows = 0;
  /// A new file is begun when one has about this many bytes; 0 = no limit.
  std::int64_t max_file_bytes = 0;
  bool data_change = true;
  /// Below the table: `_change_data` for change files (no statistics then).
  std::string subfolder;
  bool statistics = true;
  /// As many files as Spark's tasks would write (plan/write_tasks.h), for rows that the user's query gives.
  bool by_task = false;
  /// Rows that turn out to be none leave a file without rows behind, as Spark's first task does; the log does not name
  /// it where statistics tell that it is empty.
  bool empty_file = false;
};

/// NOT NULL, invariants and CHECK constraints of the table over the columns of `rows` (its output has the table's
/// columns).
Result<std::vector<RowConstraint>> ConstraintsOf(const delta::Metadata& metadata, const types::Schema& schema,
                                                 const plan::PlanPtr& rows, const plan::AnalysisConfig& config);

/// Runs `rows` (analyzed; output: the columns of `schema` in order, extra columns behind them only for change files)
/// into files of the table. Nothing is synced. A violated constraint removes the files and gives its error.
Result<DataFiles> WriteDataFiles(const TableContext& context, const storage::Location& table,
                                 const delta::Metadata& metadata, const types::Schema& schema,
                                 const plan::PlanPtr& rows, const std::vector<RowConstraint>& constraints,
                                 const DataFileOptions& options);

/// Runs a plan and gives its rows (few).
Result<std::vector<types::Value::List>> RunRows(const TableContext& context, const plan::PlanPtr& plan);

/// A node's copy with another child.
plan::PlanPtr ProjectTo(const plan::PlanPtr& child, std::vector<plan::ExprPtr> exprs, const types::Schema& schema);
/// An aggregate over all rows of `child`: one output column per expression.
Result<plan::PlanPtr> AggregateAll(const plan::PlanPtr& child, const std::vector<plan::ExprPtr>& aggregates);
/// count_if(condition is not true).
Result<plan::ExprPtr> CountViolations(const plan::ExprPtr& condition, const plan::AnalysisConfig& config);
Result<plan::ExprPtr> CountIf(const plan::ExprPtr& condition, const plan::AnalysisConfig& config);

}  // namespace fleuve::tables
