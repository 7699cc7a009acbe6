#pragma once

/// \file
/// One Parquet file written from chunks, and the statistics of its columns.

#include <memory>
#include <string>
#include <vector>

#include "engine/duckdb_pch.h"
#include "engine/engine.h"
#include "engine/files/file_functions_internal.h"

namespace fleuve::engine {

/// How one Parquet file is written.
struct ParquetFileOptions {
  /// Spark's schema of the file's columns.
  types::Schema schema;
  /// Names and field ids in the file; same shape as `schema`.
  types::Schema physical_schema;
  std::string compression = "snappy";
  std::map<std::string, std::string> key_value_metadata;
  std::int64_t row_group_rows = 122880;
  /// Full row groups are encoded on another thread of it, if one is free, while the next one fills; may be null.
  std::shared_ptr<ResourceBudget> budget;
};

/// Raises kUnsupported for types that Parquet (or Spark's writer) does not hold and for unknown codecs.
void CheckParquetOptions(const ParquetFileOptions& options);
/// `.snappy.parquet`, `.parquet`, ...
std::string ParquetExtension(const std::string& compression);

/// Raises. Threads: one at a time.
class ParquetFileWriter final : public RowFileWriter {
 public:
  /// The file is made when the first row group is full, or at the end. `context` lives longer; `options` too.
  ParquetFileWriter(duckdb::ClientContext& context, const ParquetFileOptions& options, std::string path);
  ~ParquetFileWriter() override;
  void Write(duckdb::DataChunk& rows) override;
  std::int64_t bytes() const override;
  std::int64_t Finish() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Gathers bounds and NULL counts of leaf columns while rows pass.
class StatisticsCollector {
 public:
  /// \param leaves  how many leaf columns from the start; -1 = all
  StatisticsCollector(const types::Schema& schema, const types::Schema& physical_schema, int leaves);
  ~StatisticsCollector();
  /// The chunk is flattened.
  void Add(duckdb::DataChunk& rows);
  std::vector<ColumnStatistics> Take();

  struct Leaf;

 private:
  std::vector<std::unique_ptr<Leaf>> leaves_;
};

}  // namespace fleuve::engine
