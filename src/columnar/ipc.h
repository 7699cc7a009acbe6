#pragma once

/// \file
/// Arrow IPC streams and Arrow schemas of Spark types. The only door to Arrow C++.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "columnar/record_batch.h"
#include "types/value.h"

namespace fleuve::columnar {

/// How Spark types look in Arrow for a client or a file.
struct ArrowOptions {
  /// The zone written into timestamp types (Spark: the session's zone).
  std::string time_zone = "UTC";
};

/// The Arrow C schema (format "+s") of a Spark schema: string u, binary z, decimal d:p,s, date tdD, timestamp tsu:ZONE,
/// timestamp_ntz tsu:, day-time interval tDu, year-month interval tiM, array +l (`element`), map +m (`entries`,
/// `key`, `value`), struct +s, void n, variant struct<value, metadata> with metadata as Spark's.
/// \param out  released by the caller.
Result<void> ToArrowSchema(const types::Schema& schema, const ArrowOptions& options, ArrowSchema* out);
/// The Spark schema of an Arrow one. UNSUPPORTED_ARROWTYPE where Spark has no such type.
Result<types::Schema> FromArrowSchema(const ArrowSchema& schema);

/// One IPC stream: schema, the batches, end of stream. `batches` may be empty.
Result<std::string> EncodeIpcStream(const types::Schema& schema, const std::vector<RecordBatch>& batches,
                                    const ArrowOptions& options);
struct IpcContent {
  types::Schema schema;
  std::vector<RecordBatch> batches;
};
/// Reads an IPC stream (compressed bodies and dictionaries too). kCorrupt where the bytes are none.
Result<IpcContent> DecodeIpcStream(std::string_view bytes);

/// Builds one batch from rows of values (small data: command results, metrics, tests).
Result<RecordBatch> BatchFromRows(const types::Schema& schema, const std::vector<types::Value::List>& rows);
/// The rows of a batch as values (small data and tests).
Result<std::vector<types::Value::List>> RowsFromBatch(const RecordBatch& batch);
/// `count` rows from `offset`, sharing the memory.
RecordBatch Slice(const RecordBatch& batch, std::int64_t offset, std::int64_t count);

}  // namespace fleuve::columnar
