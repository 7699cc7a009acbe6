#pragma once

/// \file
/// Runs typed plans: rows out, or files written. The only door to DuckDB; no DuckDB type is seen outside this room.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/resource_lease.h"
#include "base/result.h"
#include "columnar/record_batch.h"
#include "plan/logical_plan.h"
#include "plan/scan.h"
#include "types/value.h"

namespace fleuve::engine {

/// How an engine instance is set up.
struct EngineOptions {
  /// Threads of one operation, the calling one included; 0 = one per core. 1 is best for small streaming batches.
  int threads = 0;
  /// Memory for operators before they spill; 0 = 60 % of what the machine (or its control group) has.
  std::int64_t memory_bytes = 0;
  /// Where operators spill to; empty = a fresh folder below the system's temporary one, removed with the engine.
  std::string spill_directory;
  /// Where a run that writes much takes another thread from, if one is free; null = it has its own alone.
  std::shared_ptr<ResourceBudget> budget;
};

/// What observe() computed in one run.
struct ObservedMetrics {
  std::string name;
  types::Schema schema;
  types::Value::List row;
};

/// Counts of one run, filled while it goes and complete when its reader has ended or WriteFiles has returned. Give one
/// to a run to have its leaves counted; kMetrics nodes are computed in every run that has an observer. Threads: any.
class RunObserver {
 public:
  /// Rows that the leaf (kFileScan, kRows, kRange node of the plan that ran) gave before any filter.
  std::int64_t LeafRows(const plan::LogicalPlan* leaf) const;
  /// One entry per kMetrics node that finished, in the plan's order (depth first, left to right).
  std::vector<ObservedMetrics> metrics() const;

  /// For the engine's own use.
  void AddLeafRows(const plan::LogicalPlan* leaf, std::int64_t rows);
  void AddMetrics(ObservedMetrics metrics);

 private:
  mutable std::mutex mutex_;
  std::map<const plan::LogicalPlan*, std::int64_t> leaf_rows_;
  std::vector<ObservedMetrics> metrics_;
};

struct ExecuteOptions {
  /// Cancelling it ends the run within 200 ms with kCancelled; may be null.
  CancellationTokenPtr token;
  /// May be null.
  std::shared_ptr<RunObserver> observer;
  /// Largest number of rows in one batch.
  std::int64_t batch_rows = 10000;
  /// A batch ends early when it has about this many bytes.
  std::int64_t batch_bytes = 4 << 20;
};

/// How and where files are written.
struct WriteSpec {
  plan::FileFormat format = plan::FileFormat::kParquet;
  /// Absolute local path of the target folder; made if it is not there. Files get fresh names in it.
  std::string folder;
  /// Names of partition columns (in Spark's names, as in the plan's output), in order: they make `col=value` folders
  /// and are not written into the files.
  std::vector<std::string> partition_columns;
  /// False: partitioned rows go to separate files without `col=value` folders (random prefixes, column mapping).
  bool partition_folders = true;
  /// Names used for partition folders where they differ from the column's (column mapping); empty = the same.
  std::vector<std::string> partition_folder_names;
  /// Schema of the data columns as written: physical names and `parquet.field.id` in metadata, same shape as the data
  /// columns of the output; nullopt = Spark's names, no ids. Parquet only.
  std::optional<types::Schema> physical_schema;
  /// snappy (default), zstd, gzip, uncompressed, lz4, brotli for Parquet; none, gzip, ... for text formats (see
  /// `options` compression).
  std::string compression = "snappy";
  /// Further Parquet key-value metadata. `org.apache.spark.sql.parquet.row.metadata` is always written.
  std::map<std::string, std::string> key_value_metadata;
  /// A new file is begun when one has about this many bytes; 0 = no limit.
  std::int64_t target_file_bytes = 0;
  /// A new file is begun after this many rows; 0 = no limit. (maxRecordsPerFile)
  std::int64_t max_file_rows = 0;
  /// Rows of one Parquet row group.
  std::int64_t row_group_rows = 122880;
  /// True: zero rows give one file without rows (Spark's batch writers of files); false: no file (Delta).
  bool write_empty_file = false;
  /// The last output column, a BIGINT, is not written: rows with different values go to different files, whose names
  /// tell it. Without it all rows have 0.
  bool by_task = false;
  /// Options of text formats (header, sep, dateFormat, ...).
  plan::Options options;
  std::string session_zone = "UTC";
  /// Columns whose statistics are wanted: the first n leaf columns; -1 = all, 0 = none.
  int statistics_columns = -1;
};

/// Bounds of one leaf column of a file. `path` in the names of the files (physical where given), outermost first.
struct ColumnStatistics {
  std::vector<std::string> path;
  types::DataType type;
  /// NULL where unknown (no value, NaN, a type without bounds). String bounds are not cut.
  types::Value min;
  types::Value max;
  /// -1 where unknown.
  std::int64_t null_count = -1;
};

struct WrittenFile {
  /// Below the target folder, with `/`, not URI-encoded beyond what partition folders hold.
  std::string relative_path;
  std::int64_t size_bytes = 0;
  std::int64_t row_count = 0;
  /// One per partition column.
  types::Value::List partition_values;
  std::vector<ColumnStatistics> statistics;
};

struct WriteResult {
  std::vector<WrittenFile> files;
  std::int64_t row_count = 0;
};

/// One DuckDB instance. Batch operations of a session share one, each streaming query has its own.
/// Threads: any; every run has its own connection. Running readers keep the instance alive.
class Engine {
 public:
  /// Settings that are wrong: kInvalidArgument. Costs about 10 ms and 3 MB.
  static Result<std::unique_ptr<Engine>> Open(const EngineOptions& options);
  virtual ~Engine() = default;

  /// Starts a prepared plan (see plan::Prepare): streams its visible columns in the plan's order, bounded in memory.
  /// The plan is kept until the reader goes. Dropping the reader ends the run. Errors here and from the reader: Spark's
  /// run-time conditions raised by functions; kCancelled; kResourceExhausted (memory, disk); INTERNAL_ERROR for bugs.
  /// An instance that died of one reopens itself with the next run.
  virtual Result<std::unique_ptr<columnar::BatchReader>> Execute(const plan::PlanPtr& prepared,
                                                                 const ExecuteOptions& options) = 0;

  /// Runs a prepared plan into files, rows in order. Nothing is synced: the caller syncs files and folders before it
  /// makes them visible. On an error all files of this call are removed.
  virtual Result<WriteResult> WriteFiles(const plan::PlanPtr& prepared, const WriteSpec& spec,
                                         const ExecuteOptions& options) = 0;

  /// Changes settings for later runs.
  virtual Result<void> SetThreads(int threads) = 0;
  virtual Result<void> SetMemory(std::int64_t bytes) = 0;
};

/// Reads a whole result (small data: commands, metrics, tests).
Result<std::vector<columnar::RecordBatch>> ReadAll(columnar::BatchReader& reader);

}  // namespace fleuve::engine
