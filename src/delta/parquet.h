#pragma once

/// \file
/// What delta needs of a Parquet library: the engine implements it, the process wires it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "columnar/record_batch.h"
#include "types/data_type.h"

namespace fleuve::delta {

/// Reads checkpoint files. Threads: any.
class ParquetReader {
 public:
  virtual ~ParquetReader() = default;
  /// The file's columns as Spark types: INT64 bigint, INT32 int, BOOLEAN boolean, UTF8 string, groups structs, lists
  /// arrays, maps maps; everything nullable. kNotFound, kCorrupt.
  virtual Result<types::Schema> ReadSchema(const std::string& path) = 0;
  /// Reads the columns named in `schema`, in that order. Every column and every nested field exists in the file with
  /// that type (callers cut the schema down to what `ReadSchema` says).
  virtual Result<std::unique_ptr<columnar::BatchReader>> Read(const std::string& path, const types::Schema& schema) = 0;
};

/// Writes checkpoint files. Threads: any.
class ParquetWriter {
 public:
  virtual ~ParquetWriter() = default;
  /// Writes all rows of `rows` to the new file `path` (Snappy), not synced. Returns its size in bytes. Fields that are
  /// not nullable in `schema` may be written as optional.
  virtual Result<std::int64_t> Write(const std::string& path, const types::Schema& schema,
                                     std::unique_ptr<columnar::BatchReader> rows) = 0;
};

}  // namespace fleuve::delta
