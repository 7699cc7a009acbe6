#pragma once

/// \file
/// `df.write.format("json" | "csv" | "parquet" | "text").save(path)`: a plan into a folder of files.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "plan/resolver.h"
#include "storage/object_store.h"

namespace fleuve::connectors::files {

enum class SaveMode { kErrorIfExists, kAppend, kOverwrite, kIgnore };

struct FileWriteRequest {
  /// parquet, json, csv, text; any letter case.
  std::string format;
  /// As written.
  std::string path;
  SaveMode mode = SaveMode::kErrorIfExists;
  std::vector<std::string> partition_by;
  plan::Options options;
};

/// What a write of files needs of the engine: format, columns and options checked. Nothing is written.
/// Errors (analysis): types that the format cannot hold (UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE), unknown partition
/// columns, options with bad values or not served, bucketing.
/// \param schema  the columns of the plan that is written
Result<engine::WriteSpec> MakeWriteSpec(const FileWriteRequest& request, const types::Schema& schema,
                                        const plan::AnalysisConfig& config);

/// Runs an analyzed plan into the folder under Spark's save modes: files, then `_SUCCESS`. The result becomes visible
/// file by file at the end (renames); an error leaves what was there before, with overwrite too.
/// PATH_ALREADY_EXISTS with kErrorIfExists. Mode kOverwrite honours `partitionOverwriteMode` (option or setting).
Result<engine::WriteResult> WriteFolder(engine::Engine& engine, const plan::PlanPtr& plan,
                                        const FileWriteRequest& request, const plan::AnalysisConfig& config,
                                        const engine::ExecuteOptions& execute);

}  // namespace fleuve::connectors::files
