#pragma once

/// \file
/// Columns to byte rows and back: how keys and values of a store are made of Arrow data.
///
/// A key is the same bytes for values that Spark holds equal: -0.0 is 0.0, every NaN is one, NULL is a value. Fields of
/// fixed width lie side by side, texts and nested values with their lengths.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/record_batch.h"
#include "state/byte_rows.h"
#include "types/data_type.h"

namespace fleuve::operators {

/// Some columns of record batches, by position.
class RowEncoder {
 public:
  /// \param columns  positions in the batches given later. \param as_key  equal values give equal bytes.
  RowEncoder(const types::Schema& schema, std::vector<std::size_t> columns, bool as_key);
  /// Adds one row per row of `batch` to `rows`. \param times  where not null, each row begins with the eight bytes of
  /// its time (`state::AppendTime`).
  void Encode(const columnar::RecordBatch& batch, const std::vector<std::int64_t>* times, state::ByteRows* rows) const;
  /// Row `row` alone, appended to `out`.
  void EncodeRow(const columnar::RecordBatch& batch, std::int64_t row, std::string* out) const;

 private:
  std::vector<types::DataType> types_;
  std::vector<std::size_t> columns_;
  bool as_key_ = false;
};

/// Builds a record batch of rows that `RowEncoder` made: the fields of keys, then those of values, ....
class RowDecoder {
 public:
  /// \param parts  one list of types per byte string that makes a row (key, value); all together are the columns.
  RowDecoder(std::shared_ptr<const types::Schema> schema, std::vector<std::size_t> fields_per_part);
  ~RowDecoder();
  RowDecoder(RowDecoder&&) noexcept;
  /// Adds one row; `parts[i]` holds the fields of part i (without a time in front). A part without data (nullptr) gives
  /// NULLs. kCorrupt (CANNOT_LOAD_STATE_STORE.UNCATEGORIZED) where the bytes do not fit the types.
  Result<void> Add(std::initializer_list<std::string_view> parts);
  std::int64_t row_count() const;
  /// Bytes of the rows added since the last `Finish`.
  std::size_t byte_count() const;
  /// The rows added since the last call.
  columnar::RecordBatch Finish();

 private:
  struct Columns;
  std::unique_ptr<Columns> columns_;
};

/// Rows of a decoder as batches of bounded rows and bytes.
class BatchedRows {
 public:
  /// \param out  takes the batches; must outlive this.
  BatchedRows(RowDecoder decoder, std::vector<columnar::RecordBatch>* out, std::int64_t batch_rows = 1 << 14);
  /// As `RowDecoder::Add`. False where a row failed: no more is taken, and `Finish` gives the error.
  bool Add(std::initializer_list<std::string_view> parts);
  /// Gives the rows that are left; more may be added then.
  Result<void> Finish();

 private:
  RowDecoder decoder_;
  std::vector<columnar::RecordBatch>* out_;
  const std::int64_t batch_rows_;
  std::optional<Error> failure_;
};

/// The event time of each row of column `column`: a timestamp, or the end of a window struct; `kNoTime` for NULL.
inline constexpr std::int64_t kNoTime = INT64_MIN;
std::vector<std::int64_t> EventTimesOf(const columnar::RecordBatch& batch, std::size_t column);

/// The batch with one more column (not NULL booleans), shared with the old one's memory.
columnar::RecordBatch WithBooleans(const columnar::RecordBatch& batch, const std::vector<bool>& values,
                                   std::shared_ptr<const types::Schema> schema);

}  // namespace fleuve::operators
