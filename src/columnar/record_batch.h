#pragma once

/// \file
/// Rows between rooms: Arrow C data with an owner.

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "columnar/arrow_c_data.h"
#include "types/data_type.h"

namespace fleuve::columnar {

/// Owns an ArrowArray; releases it once.
class ArrayHolder {
 public:
  ArrayHolder() = default;
  /// Takes over `array`, which is marked released.
  explicit ArrayHolder(ArrowArray* array) : array_(*array) { array->release = nullptr; }
  ArrayHolder(ArrayHolder&& other) noexcept : array_(other.array_) { other.array_.release = nullptr; }
  ArrayHolder& operator=(ArrayHolder&& other) noexcept {
    if (this != &other) {
      Reset();
      array_ = other.array_;
      other.array_.release = nullptr;
    }
    return *this;
  }
  ~ArrayHolder() { Reset(); }
  ArrowArray* get() { return &array_; }
  const ArrowArray* get() const { return &array_; }

 private:
  void Reset() {
    if (array_.release != nullptr) {
      array_.release(&array_);
    }
  }
  ArrowArray array_{};
};

/// Some rows of one schema: a struct array, one child per column. The column types are the Arrow forms of the Spark
/// types (see arrow_schema.h); names are Spark's names.
struct RecordBatch {
  std::shared_ptr<const types::Schema> schema;
  std::shared_ptr<ArrayHolder> array;  ///< shared, never written after it was made
  std::int64_t row_count() const { return array ? array->get()->length : 0; }
};

/// A stream of batches. Threads: one caller at a time.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  virtual const types::Schema& schema() const = 0;
  /// The next batch (never empty), or nullopt at the end. After an error nothing more comes.
  virtual Result<std::optional<RecordBatch>> Next() = 0;
};

/// A reader over batches that are already there.
std::unique_ptr<BatchReader> MakeReader(types::Schema schema, std::vector<RecordBatch> batches);

}  // namespace fleuve::columnar
