#pragma once

/// \file
/// What tables and streams of files share: formats, reader options, listing of paths, schemas, scans.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connectors/files/file_table.h"
#include "connectors/files/partitions.h"
#include "engine/infer.h"

namespace fleuve::connectors::files {

/// The format of a name in any letter case. kUnsupported for orc, avro, xml; DATA_SOURCE_NOT_FOUND for others.
Result<plan::FileFormat> ParseFormat(const std::string& name);
/// `xml` and `avro` are read as JSON documents out of a container: its name for option `fleuve.container`; else empty.
std::string ContainerOf(const std::string& format);
/// As EXPLAIN and errors name it: `json`, `binaryFile`.
const char* FormatName(plan::FileFormat format);

/// Options with the session's defaults filled in (corrupt record column, missing and corrupt files), checked for the
/// format.
Result<plan::Options> ReaderOptions(plan::FileFormat format, const plan::Options& options,
                                    const plan::AnalysisConfig& config);

/// What paths with globs hold at this moment.
struct FoundFiles {
  std::vector<ListedFile> files;
  /// Base folder for partition columns, per file.
  std::vector<std::string> bases;
};

/// How paths are looked at.
struct FindOptions {
  ListFilter filter;
  bool recursive = false;
  /// Option basePath, absolute; empty: each path itself.
  std::string base_path;
};
Result<FindOptions> MakeFindOptions(const plan::Options& options, const plan::AnalysisConfig& config);

/// All files below the paths. PATH_NOT_FOUND where a path names nothing (not for `lenient`).
/// Folders written by a streaming file sink (`_spark_metadata`) give the files of their log. A file that several paths
/// name comes once for each of them.
Result<FoundFiles> FindFiles(const std::vector<std::string>& paths, const FindOptions& options, bool lenient);

/// Every file once, as the first path that names it does.
FoundFiles Distinct(FoundFiles found);

/// Drops files that are not direct children of their paths: what Spark reads where there are no partition columns.
FoundFiles DirectChildren(const FoundFiles& found);

/// The schema of the files' content. UNABLE_TO_INFER_SCHEMA without files.
Result<types::Schema> InferFileSchema(plan::FileFormat format, const std::vector<ListedFile>& files,
                                      const plan::Options& options, const plan::AnalysisConfig& config);
/// The type that holds both columns of two Parquet files. CANNOT_MERGE_SCHEMAS.
Result<types::DataType> MergeParquetTypes(const std::string& name, const types::DataType& a, const types::DataType& b);
/// text and binaryFile have a fixed schema; nullopt for others.
std::optional<types::Schema> FixedSchema(plan::FileFormat format);

/// Data columns and partition columns from what the user gave or what was found. Everything nullable, char and varchar
/// as strings. COLUMN_ALREADY_EXISTS, UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE.
struct SplitSchema {
  types::Schema data;
  types::Schema partition;
  types::Schema all;
};
Result<SplitSchema> MakeSchema(plan::FileFormat format, const types::Schema& data, const types::Schema& partition,
                               bool case_sensitive);

/// A scan over files. \param values  per file, one text per partition column; empty where there are none.
Result<std::shared_ptr<plan::FileScan>> MakeScan(plan::FileFormat format, const SplitSchema& schema,
                                                 const plan::Options& options, const std::string& session_zone,
                                                 const std::vector<ListedFile>& files,
                                                 const std::vector<std::vector<std::optional<std::string>>>& values);

/// The files that the log of a streaming file sink names; nullopt where the folder has no such log.
Result<std::optional<std::vector<ListedFile>>> SinkLogFiles(const std::string& folder);

bool ConfBool(const plan::AnalysisConfig& config, const char* key, bool fallback);
std::string ConfText(const plan::AnalysisConfig& config, const char* key, const std::string& fallback);

}  // namespace fleuve::connectors::files
