#pragma once

/// \file
/// Rows between DuckDB vectors and Arrow arrays in Spark's Arrow forms (see columnar/ipc.h).

#include <memory>
#include <vector>

#include "columnar/record_batch.h"
#include "engine/duckdb_pch.h"
#include "types/data_type.h"

namespace fleuve::engine {

/// Fills rows 0..count-1 of `out` (a fresh vector of the carrier type) from `array`, from row `offset` on. Text is not
/// copied: the array must live as long as the vector.
void ArrowToVector(const ArrowArray& array, const types::DataType& type, duckdb::idx_t offset, duckdb::idx_t count,
                   duckdb::Vector& out);

class ArrowColumnBuilder;

/// Gathers chunks into one record batch.
class ArrowBatchBuilder {
 public:
  explicit ArrowBatchBuilder(std::shared_ptr<const types::Schema> schema);
  ~ArrowBatchBuilder();
  /// Appends all rows of the chunk (flattened in place).
  void Append(duckdb::DataChunk& chunk);
  std::int64_t rows() const { return rows_; }
  std::int64_t bytes() const;
  /// The rows so far; the builder is empty afterwards.
  columnar::RecordBatch Finish();

 private:
  void Begin();
  std::shared_ptr<const types::Schema> schema_;
  std::vector<std::unique_ptr<ArrowColumnBuilder>> columns_;
  std::int64_t rows_ = 0;
};

}  // namespace fleuve::engine
