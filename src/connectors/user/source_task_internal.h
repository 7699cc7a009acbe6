#pragma once

/// \file
/// Tasks of `fleuve_worker` that make and plan data sources. Private to this folder.

#include <string>
#include <string_view>
#include <vector>

#include "columnar/record_batch.h"
#include "connectors/user/user_source.h"
#include "plan/external.h"

namespace fleuve::connectors::user {

/// `Failed to <action> Python data source <type>: ...` where user code raised; other errors as they are.
Error SourceError(Error error, const std::string& action, const std::string& type);
/// `Failed when Python streaming data source perform <action>: ...`, likewise.
Error StreamError(Error error, const std::string& action);

Json OptionsJson(const plan::Options& options);
/// Rows of one batch (spark.sql.execution.arrow.maxRecordsPerBatch).
std::int64_t MostRows(const plan::AnalysisConfig& config);

/// What a task gave that asks nothing and wants no input.
struct TaskResult {
  Json result;
  std::vector<std::string> outputs;
};
Result<TaskResult> RunTask(const SourceClass& source, const python::Task& task);

/// A source that the class has made.
struct MadeSource {
  SourceClass source;
  /// The pickled instance.
  std::string instance;
  types::Schema schema;
};
Result<MadeSource> MakeSource(const SourceClass& source, const std::optional<types::Schema>& schema,
                              const plan::Options& options);

/// The rows that a pickled function reads of partitions.
/// \param partitions  an Arrow stream with one column of bytes; \param output  one per column, in order.
Result<plan::PlanPtr> ReadPlan(const MadeSource& made, const std::string& function, const std::string& partitions,
                               const std::vector<plan::Attribute>& output, const plan::AnalysisConfig& config);

/// Filters as a reader in Python is told them.
struct PushedFilters {
  /// name, column (parts), negated, and value or values: columns of `values`.
  Json::Array filters;
  /// An Arrow stream of one row.
  std::string values;
  /// For each filter the position of the conjunct that it stands for; -1: it follows from one and does not replace it.
  std::vector<int> origin;
};
Result<PushedFilters> TellFilters(const std::vector<plan::ExprPtr>& conjuncts);

}  // namespace fleuve::connectors::user
