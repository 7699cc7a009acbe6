#pragma once

/// \file
/// Schemas found by looking into files, with Spark's rules.

#include <cstdint>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/result.h"
#include "plan/scan.h"
#include "types/data_type.h"

namespace fleuve::engine {

/// How inference goes about it.
struct InferOptions {
  /// Format options as for reading (multiLine, header, sep, mode, primitivesAsString, inferSchema, samplingRatio, ...).
  plan::Options options;
  std::string session_zone = "UTC";
  /// Name of the column for malformed records that JSON inference adds; empty: malformed records are left out.
  std::string corrupt_record_column = "_corrupt_record";
  /// CSV: union of all files' headers by name instead of the first file's header (Auto Loader).
  bool csv_merge_headers = false;
  /// Stop after about this many bytes; 0 = read all.
  std::int64_t byte_limit = 0;
  CancellationTokenPtr token;
};

/// The schema of JSON files (fields sorted by name in every struct; columns of no value are strings). An empty struct
/// where there is no record. Errors: FAILED_READ_FILE.*, MALFORMED_RECORD_IN_SCHEMA_INFERENCE (mode FAILFAST).
Result<types::Schema> InferJson(const std::vector<plan::ScanFile>& files, const InferOptions& options);
/// The schema of CSV files: names from the header or `_c0`, ...; all strings unless `inferSchema` is set.
Result<types::Schema> InferCsv(const std::vector<plan::ScanFile>& files, const InferOptions& options);
/// The columns of one Parquet file as Spark sees them: from Spark's own metadata where it is there, else from the
/// file's types. Everything nullable. FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER (kCorrupt) where it is no Parquet file.
Result<types::Schema> ReadParquetSchema(const std::string& path);

/// The schema of XML files (option rowTag); \param infer_types  false: leaves are strings.
Result<types::Schema> InferXmlFiles(const std::vector<plan::ScanFile>& files, const plan::Options& options,
                                    const std::string& session_zone, bool infer_types);
/// The types of an Avro container file's own schema. kCorrupt where it is none.
Result<types::Schema> ReadAvroFileSchema(const std::string& path);

/// What two JSON schemas have in common: Spark's merge of inferred types.
types::DataType MergeJsonTypes(const types::DataType& a, const types::DataType& b);

/// Checks options of a format as its readers and writers will read them: bad values kInvalidArgument, what is not
/// served kUnsupported; both name the option.
Result<void> CheckReadOptions(plan::FileFormat format, const plan::Options& options, const std::string& session_zone);
Result<void> CheckWriteOptions(plan::FileFormat format, const plan::Options& options, const std::string& compression,
                               const std::string& session_zone);

}  // namespace fleuve::engine
