#pragma once

/// \file
/// Options and settings of a write, read and checked.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "delta/transaction.h"
#include "plan/resolver.h"
#include "plan/scan.h"
#include "tables/context.h"
#include "tables/write.h"

namespace fleuve::tables {

struct WriteOptions {
  bool merge_schema = false;
  bool overwrite_schema = false;
  bool data_change = true;
  std::optional<std::string> replace_where;
  /// partitionOverwriteMode as an option; nullopt: the setting decides.
  std::optional<bool> dynamic_overwrite;
  std::optional<std::string> user_metadata;
  std::optional<std::int64_t> max_records_per_file;
  std::optional<std::string> compression;
};

/// DELTA_ILLEGAL_OPTION for values that cannot be read.
Result<WriteOptions> ReadWriteOptions(const plan::Options& options, const plan::AnalysisConfig& config);

/// The application transaction that a write carries (options first, then settings); nullopt: none.
/// DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS where only one of two is there, DELTA_ILLEGAL_OPTION for a bad version.
Result<std::optional<delta::SetTransaction>> ReadAppTransaction(const plan::Options& options,
                                                                const plan::AnalysisConfig& config);

/// A setting of the session; nullopt where it is not set.
std::optional<std::string> Conf(const plan::AnalysisConfig& config, const std::string& key);
bool ConfFlag(const plan::AnalysisConfig& config, const std::string& key, bool fallback);

/// An operation with what every commit takes from the session's settings: user metadata, the size of a checkpoint's
/// parts. A write's own option userMetadata wins: its caller sets it.
delta::Operation NamedOperation(const TableContext& context, std::string name);
/// What the session says of checkpoints.
delta::CheckpointShape CheckpointShapeOf(const plan::AnalysisConfig& config);

/// Properties that a new table gets from `spark.databricks.delta.properties.defaults.*`.
delta::StringMap DefaultProperties(const plan::AnalysisConfig& config);

}  // namespace fleuve::tables
