#pragma once

/// \file
/// `spark.read.format("json" | "csv" | "parquet" | "text" | "binaryFile")`: files as a table.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/resolver.h"
#include "plan/scan.h"
#include "types/data_type.h"

namespace fleuve::connectors::files {

/// What `spark.read` says.
struct FileReadRequest {
  /// json, csv, parquet, text, binaryFile; any letter case.
  std::string format;
  std::optional<types::Schema> schema;
  plan::Options options;
  /// As written: absolute, relative, `file:` URIs, globs. Option `path` is used where this is empty.
  std::vector<std::string> paths;
};

/// True for formats that this room reads (any letter case), and for orc, avro, xml, which it refuses by name.
bool IsFileFormat(std::string_view format);

/// Lists the files, finds partition columns, infers the schema where none is given. The files are those of this moment.
/// Errors (analysis): PATH_NOT_FOUND, UNABLE_TO_INFER_SCHEMA, CONFLICTING_PARTITION_COLUMN_NAMES, options with bad
/// values or not served (kUnsupported, by name), files that cannot be read while inferring. Threads: any.
Result<std::shared_ptr<const plan::TableSource>> MakeFileTable(const FileReadRequest& request,
                                                               const plan::AnalysisConfig& config);

}  // namespace fleuve::connectors::files
