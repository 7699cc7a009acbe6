#pragma once

/// \file
/// Auto Loader: the `cloudFiles` source, the SQL function `read_files`, and `cloud_files_state`.

#include <memory>
#include <string>

#include "base/result.h"
#include "connectors/sink.h"
#include "plan/resolver.h"
#include "plan/scan.h"

namespace fleuve::connectors::autoloader {

/// Adds the source `cloudfiles`.
void RegisterAutoLoader(ConnectorRegistry& registry);

/// `read_files('path', format => 'json', ...)` without STREAM. \param arguments  named arguments, values as text
/// (names in any letter case; `schema` holds DDL).
Result<std::shared_ptr<const plan::TableSource>> ReadFilesTable(const std::string& path, const plan::Options& arguments,
                                                                const plan::AnalysisConfig& config);
/// `STREAM read_files(...)`.
Result<std::shared_ptr<const plan::StreamRelation>> ReadFilesStream(const std::string& path,
                                                                    const plan::Options& arguments,
                                                                    const plan::AnalysisConfig& config);
/// `cloud_files('path', 'format', map(...))`: STREAM read_files with the defaults of `cloudFiles`.
Result<std::shared_ptr<const plan::StreamRelation>> CloudFilesStream(const std::string& path, const std::string& format,
                                                                     const plan::Options& options,
                                                                     const plan::AnalysisConfig& config);
/// `cloud_files_state('<checkpoint>')`: one row per file that the checkpoint's Auto Loader sources know.
Result<std::shared_ptr<const plan::TableSource>> CloudFilesState(const std::string& checkpoint);

/// True and the error of `spark.read.format("cloudFiles")`: the source is for streams only.
Error BatchReadRefused();

}  // namespace fleuve::connectors::autoloader
