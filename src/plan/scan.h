#pragma once

/// \file
/// What is read: explicit lists of files with what is known of each, or rows. Engine, connectors and delta share this.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/record_batch.h"
#include "plan/expr.h"
#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::plan {

/// Options by name; compare names without case (`FindOption`). Values as the user wrote them.
using Options = std::map<std::string, std::string>;
/// The value of an option, its name compared without ASCII case; null where it is not set.
const std::string* FindOption(const Options& options, std::string_view name);

/// The rows of one file that a Delta deletion vector has deleted.
class DeletedRows {
 public:
  virtual ~DeletedRows() = default;
  /// Number of deleted rows.
  virtual std::int64_t count() const = 0;
  /// Appends to `kept` the offsets (0..count-1) of the rows start..start+count-1 that are not deleted; ascending.
  /// Returns how many. Threads: any.
  virtual std::int64_t Keep(std::int64_t start, std::int64_t count, std::uint32_t* kept) const = 0;
};

/// One file to read.
struct ScanFile {
  /// Absolute local path.
  std::string path;
  /// As `_metadata.file_path` shows it: a URI such as file:/a%20b.
  std::string uri;
  std::int64_t size_bytes = 0;
  std::int64_t modified_ms = 0;
  /// -1 where unknown.
  std::int64_t row_count = -1;
  /// One value per partition column of the scan, in its order.
  std::vector<types::Value> partition_values;
  std::shared_ptr<const DeletedRows> deleted_rows;
  /// Values of `FileScan::constants` for this file (change data: type, version, timestamp).
  std::vector<types::Value> constants;
  /// Row id of the first row where the table has row tracking.
  std::optional<std::int64_t> base_row_id;
};

/// Told by a reader of JSON or CSV that a record has fields which the schema lacks (Auto Loader's schema evolution).
class UnknownFieldHandler {
 public:
  virtual ~UnknownFieldHandler() = default;
  /// The error that ends the run, or nullopt: go on (the fields are rescued or ignored, and the reader need not ask
  /// again for this field). \param field  dotted name of one such field; \param record  the record's text. Threads:
  /// any.
  virtual std::optional<Error> OnUnknownField(const ScanFile& file, const std::string& field,
                                              std::string_view record) const = 0;
};

enum class FileFormat { kParquet, kJson, kCsv, kText, kBinaryFile };

/// A scan over files. Output columns, in order: data columns, partition columns, constants, then `_metadata` if asked
/// for (a struct as `MetadataColumnType()`), then the row index if asked for, each with the attribute in the Scan
/// node's output.
struct FileScan {
  FileFormat format = FileFormat::kParquet;
  /// What the files hold, in Spark's names. Parquet columns are found by field id where `physical_ids` is set, else by
  /// `physical_names` where set, else by name (case-insensitively unless exact); a missing column gives NULL. Types may
  /// be wider than in the file (type widening).
  types::Schema data_schema;
  /// For column mapping: the physical struct (names and `parquet.field.id` metadata) in the shape of data_schema.
  std::optional<types::Schema> physical_schema;
  bool map_by_field_id = false;
  types::Schema partition_schema;
  types::Schema constants_schema;
  /// True: the Scan node's last output attribute is `_metadata`.
  bool with_metadata = false;
  /// True (Parquet only): the very last output attribute is a BIGINT, the row's position in its file (deleted rows
  /// count).
  bool with_row_index = false;
  /// Format options (multiLine, header, delimiter, mode, columnNameOfCorruptRecord, rescuedDataColumn, ...).
  Options options;
  /// Zone of text timestamps.
  std::string session_zone = "UTC";
  std::vector<ScanFile> files;
  /// May be null: unknown fields are ignored, or rescued where options name a rescued data column.
  std::shared_ptr<const UnknownFieldHandler> unknown_fields;
};

/// struct<file_path: string, file_name: string, file_size: bigint, file_block_start: bigint, file_block_length: bigint,
/// file_modification_time: timestamp>, all not null.
types::DataType MetadataColumnType();

/// Rows that are already there, in the output order of the node.
struct RowScan {
  std::vector<columnar::RecordBatch> batches;
};

/// A table or data source that a batch plan reads; becomes a scan when the plan is about to run. Immutable.
class TableSource {
 public:
  virtual ~TableSource() = default;
  /// All columns, partition columns included, in the table's order.
  virtual const types::Schema& schema() const = 0;
  /// As EXPLAIN and errors name it: `delta.\`/path\``, `spark_catalog.default.t`.
  virtual std::string name() const = 0;
  /// Format name: `delta`, `parquet`, ...
  virtual std::string provider() const = 0;
  /// Metadata columns on offer beside `schema`: `_metadata` or none.
  virtual bool has_file_metadata() const { return true; }
  /// The files of the table.
  /// \param filters  conjuncts over attributes named in `columns`; used only to leave out files that cannot match; the
  ///                 plan still applies them.
  /// \param columns  attributes of the scan's output, one per field of `schema`, same order.
  virtual Result<std::shared_ptr<const FileScan>> PlanScan(const std::vector<ExprPtr>& filters,
                                                           const std::vector<Attribute>& columns) const = 0;
  /// Rows instead of files where the source has no files; null otherwise.
  virtual Result<std::shared_ptr<const RowScan>> PlanRows() const { return std::shared_ptr<const RowScan>(); }
};

/// A stream that a plan reads: what the analyzer knows of it. The `stream` room turns it into a running source.
class StreamRelation {
 public:
  virtual ~StreamRelation() = default;
  virtual const types::Schema& schema() const = 0;
  virtual std::string name() const = 0;
  virtual std::string provider() const = 0;
  virtual const Options& options() const = 0;
  virtual bool has_file_metadata() const { return false; }
};

}  // namespace fleuve::plan
