#pragma once

/// \file
/// Writing rows into a Delta table: create, append, overwrite (static, dynamic, replaceWhere), schema evolution,
/// inserts, and the batches of a stream.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "delta/transaction.h"
#include "plan/logical_plan.h"
#include "tables/context.h"

namespace fleuve::tables {

enum class SaveMode { kErrorIfExists, kIgnore, kAppend, kOverwrite };

/// How the input's columns find the table's.
enum class ColumnMatch {
  kByName,      ///< DataFrame writers, INSERT ... BY NAME
  kByPosition,  ///< INSERT INTO without names, insertInto
};

/// Marks a write as the micro-batch of a stream.
struct StreamBatch {
  std::string query_id;
  std::int64_t batch_id = 0;
  /// `Append` or `Complete`.
  std::string output_mode = "Append";
  /// The query reads the target itself.
  bool reads_target = false;
  /// Attempt id: `commitInfo.txnId`.
  std::string attempt_id;
  /// `commitInfo.fleuve`.
  Json commit_fields;
  /// True: `Commit` leaves the sync of `_delta_log` to the caller (who measures it, or leaves it out).
  bool caller_syncs_log = false;
};

struct WriteSpec {
  SaveMode mode = SaveMode::kAppend;
  ColumnMatch match = ColumnMatch::kByName;
  /// Values are cast to the columns' types by store assignment: INSERT, insertInto, saveAsTable(append), writeTo.
  /// Implied by `kByPosition` and by `stream`. False (save to a path, saveAsTable(overwrite)): types must be equal.
  bool store_assignment = false;
  /// partitionBy as the user gave it; nullopt: the table's (a new table: none).
  std::optional<std::vector<std::string>> partition_by;
  std::vector<std::string> cluster_by;
  /// mergeSchema, overwriteSchema, replaceWhere, partitionOverwriteMode, txnAppId, txnVersion, userMetadata,
  /// dataChange, maxRecordsPerFile, compression, optimizeWrite, delta.* (properties of a new table).
  plan::Options options;
  /// INSERT INTO t (a, b): columns named by the statement; the others get their default.
  std::vector<std::string> insert_columns;
  /// PARTITION (p = 1, q): column and constant, nullopt for a dynamic one.
  std::vector<std::pair<std::string, std::optional<types::Value>>> static_partitions;
  /// INSERT OVERWRITE: overwrite mode follows spark.sql.sources.partitionOverwriteMode.
  bool is_insert = false;
  /// INSERT INTO t REPLACE WHERE cond: SQL text; the option `replaceWhere` says the same.
  std::optional<std::string> replace_where;
  std::optional<StreamBatch> stream;
  /// Operation name where it is not WRITE: `CREATE TABLE AS SELECT`, ...
  std::string operation;
};

/// A write that has run: its files are on disk and its commit is staged; nobody sees them yet. Destroyed without
/// `Commit`: the staged commit is taken away, data files are left for VACUUM.
class PendingWrite {
 public:
  virtual ~PendingWrite() = default;
  /// True where the table already has this application's transaction (or mode kIgnore found a table): `Commit` does
  /// nothing.
  virtual bool skipped() const = 0;
  /// What must be durable before `Commit`: data files and the staged commit; folders that gained a name.
  virtual const std::vector<std::string>& files() const = 0;
  virtual const std::vector<std::string>& folders() const = 0;
  /// Makes it visible. kConflict as `delta::Transaction::CommitStaged`. \param sync  false: the caller syncs the log's
  /// folder (`log_folder`) before the commit counts.
  virtual Result<delta::CommitResult> Commit(bool sync = true) = 0;
  virtual const std::string& log_folder() const = 0;
  virtual std::int64_t row_count() const = 0;
  virtual std::int64_t file_count() const = 0;
};

/// Checks schema, partitioning, constraints and options, runs `input` into data files, stages the commit.
/// \param input  analyzed (not prepared) batch plan; its visible columns are written.
/// Errors: Delta's conditions (DELTA_METADATA_MISMATCH, DELTA_FAILED_TO_MERGE_FIELDS, DELTA_REPLACE_WHERE_MISMATCH,
/// ...), whatever the run raises, DELTA_PATH_EXISTS for kErrorIfExists.
Result<std::unique_ptr<PendingWrite>> PrepareWrite(const TableContext& context, const TableRef& table,
                                                   const plan::PlanPtr& input, const WriteSpec& spec);

/// The checks of `PrepareWrite` alone, for `start()` of a stream or `EXPLAIN`.
Result<void> CheckWrite(const TableContext& context, const TableRef& table, const types::Schema& input,
                        const WriteSpec& spec);

/// PrepareWrite, sync, Commit; conflicts of blind appends are settled inside, others reported.
/// The version committed; nullopt where the write was skipped.
Result<std::optional<std::int64_t>> Write(const TableContext& context, const TableRef& table,
                                          const plan::PlanPtr& input, const WriteSpec& spec);

}  // namespace fleuve::tables
