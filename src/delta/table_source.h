#pragma once

/// \file
/// From files of a snapshot to a scan that the engine runs.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "delta/log.h"
#include "delta/snapshot.h"
#include "plan/row_ids.h"
#include "plan/scan.h"

namespace fleuve::delta {

/// A snapshot as a table of a batch plan. `PlanScan` leaves out files by partition values and statistics.
class DeltaTable final : public plan::TableSource, public plan::RowIdSource {
 public:
  /// \param name  as EXPLAIN and errors name it: `spark_catalog.default.t`, delta.`/path`.
  DeltaTable(SnapshotPtr snapshot, std::string name);
  /// As readers see it: without the metadata keys that are Delta's own.
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return name_; }
  std::string provider() const override { return "delta"; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>& filters,
                                                         const std::vector<plan::Attribute>& columns) const override;
  bool has_row_ids() const override;
  Result<std::shared_ptr<const plan::FileScan>> PlanRowIdScan(
      const std::vector<plan::ExprPtr>& filters, const std::vector<plan::Attribute>& columns) const override;
  const SnapshotPtr& snapshot() const { return snapshot_; }

 private:
  Result<std::shared_ptr<const plan::FileScan>> Plan(const std::vector<plan::ExprPtr>& filters,
                                                     const std::vector<plan::Attribute>& columns, bool row_ids) const;

  SnapshotPtr snapshot_;
  std::string name_;
  types::Schema schema_;
};

/// The scan without files for a table of this metadata: data columns (table order without partition columns), physical
/// schema and mapping mode, partition columns. Output columns of the Scan node: data columns, then partition columns;
/// whoever builds the node orders its attributes so.
Result<plan::FileScan> MakeScan(const Metadata& metadata);
/// One file of the log as a file to read: absolute path, typed partition values in the order of
/// `scan.partition_schema`, deletion vector loaded (cached). \param table  the table's folder.
Result<plan::ScanFile> MakeScanFile(const plan::FileScan& scan, const Metadata& metadata, const AddFile& file,
                                    const storage::Location& table);

/// Absolute path within the store of a path as in the log (percent-decoded, relative to the table or absolute URI).
Result<std::string> AbsolutePath(const storage::Location& table, std::string_view log_path);
/// A typed value from a partition value's text; NULL for nullopt or an empty text.
Result<types::Value> ParsePartitionValue(const std::optional<std::string>& text, const types::DataType& type);
/// The text that `add.partitionValues` holds for a value; nullopt for NULL.
Result<std::optional<std::string>> FormatPartitionValue(const types::Value& value, const types::DataType& type);
/// `a=1/b=__HIVE_DEFAULT_PARTITION__`: folder names escaped as Hive does.
std::string PartitionFolder(const PartitionValues& values);
/// One escaped folder name part.
std::string EscapePathName(std::string_view name);

/// A table's schema as readers see it (without Delta's own metadata keys), and as it is in files: physical names and
/// `parquet.field.id`.
types::Schema ReadSchemaOf(const types::Schema& schema);
types::Schema PhysicalSchemaOf(const types::Schema& schema);
/// A path below the table (or an absolute one) as the log holds it: percent-encoded where java.net.URI does.
std::string EncodeUriPath(std::string_view path);

/// Number of rows a file says it has; -1 where the statistics do not say.
std::int64_t NumRecords(const AddFile& file);
/// The same from `add.stats`.
std::int64_t NumRecords(std::string_view stats);

/// Time travel options of a read (`versionAsOf`, `timestampAsOf`); at most one is set.
struct TimeTravel {
  std::optional<std::int64_t> version;
  std::optional<std::int64_t> timestamp_ms;
};
/// The snapshot a read means. Checks `delta.deletedFileRetentionDuration` for old versions as the reference does.
Result<SnapshotPtr> Travel(const DeltaLogPtr& log, const TimeTravel& when);

}  // namespace fleuve::delta
