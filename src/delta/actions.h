#pragma once

/// \file
/// The actions of a Delta log, and their JSON lines exactly as Spark writes them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"

namespace fleuve::delta {

/// String pairs in log order.
using StringMap = std::vector<std::pair<std::string, std::string>>;
/// Partition column (physical name) and value as text; nullopt is NULL.
using PartitionValues = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// The value of `key`, or null.
const std::string* FindIn(const StringMap& map, std::string_view key);
/// Sets or replaces.
void SetIn(StringMap& map, std::string_view key, std::string value);
/// True where something was removed.
bool EraseFrom(StringMap& map, std::string_view key);

/// The path of a file as the log keeps it, without the scheme of local files: `file:/a`, `file:///a` and `/a` name one
/// file. A part of `log_path`. (Delta's protocol leaves absolute paths to URIs; Spark compares them so.)
std::string_view CanonicalPath(std::string_view log_path);

/// Where the deletion vector of a file is.
struct DeletionVectorDescriptor {
  /// `u`: file named by a z85 uuid below the table; `i`: inline z85; `p`: absolute path.
  std::string storage_type;
  std::string path_or_inline_dv;
  std::optional<std::int32_t> offset;
  std::int32_t size_in_bytes = 0;
  std::int64_t cardinality = 0;
  std::optional<std::int64_t> max_row_index;

  /// With the path it names a logical file: `u<...>@1`.
  std::string UniqueId() const;
  bool operator==(const DeletionVectorDescriptor&) const = default;
};

/// A file of the table.
struct AddFile {
  /// As in the log: percent-encoded, relative to the table or absolute; canonical where it was read from a log.
  std::string path;
  PartitionValues partition_values;
  std::int64_t size = 0;
  std::int64_t modification_time = 0;
  bool data_change = true;
  /// JSON text; empty = none.
  std::string stats;
  std::optional<StringMap> tags;
  std::optional<DeletionVectorDescriptor> deletion_vector;
  std::optional<std::int64_t> base_row_id;
  std::optional<std::int64_t> default_row_commit_version;
  std::optional<std::string> clustering_provider;
};

/// A file that is no longer of the table.
struct RemoveFile {
  std::string path;
  std::optional<std::int64_t> deletion_timestamp;
  bool data_change = true;
  /// nullopt: the commit says nothing; true: `partition_values` and `size` are known.
  std::optional<bool> extended_file_metadata;
  std::optional<PartitionValues> partition_values;
  std::optional<std::int64_t> size;
  std::optional<StringMap> tags;
  std::optional<DeletionVectorDescriptor> deletion_vector;
  std::optional<std::int64_t> base_row_id;
  std::optional<std::int64_t> default_row_commit_version;
  std::string stats;
};

/// A file of row changes (change data feed).
struct AddCdcFile {
  std::string path;
  PartitionValues partition_values;
  std::int64_t size = 0;
  std::optional<StringMap> tags;
};

struct Metadata {
  std::string id;
  std::optional<std::string> name;
  std::optional<std::string> description;
  std::string format_provider = "parquet";
  StringMap format_options;
  std::string schema_string;
  std::vector<std::string> partition_columns;
  StringMap configuration;
  std::optional<std::int64_t> created_time;
  bool operator==(const Metadata&) const = default;
};

struct Protocol {
  std::int32_t min_reader_version = 1;
  std::int32_t min_writer_version = 2;
  std::optional<std::vector<std::string>> reader_features;
  std::optional<std::vector<std::string>> writer_features;
  bool operator==(const Protocol&) const = default;
};

struct SetTransaction {
  std::string app_id;
  std::int64_t version = 0;
  std::optional<std::int64_t> last_updated;
};

struct DomainMetadata {
  std::string domain;
  std::string configuration;
  bool removed = false;
};

/// What a commit says of itself. `operation_parameters` is an object whose values are strings or null, as Spark has it.
struct CommitInfo {
  std::optional<std::int64_t> in_commit_timestamp;
  std::optional<std::int64_t> timestamp;
  std::optional<std::string> user_id;
  std::optional<std::string> user_name;
  std::string operation;
  Json operation_parameters;
  std::optional<std::int64_t> read_version;
  std::optional<std::string> isolation_level;
  std::optional<bool> is_blind_append;
  std::optional<StringMap> operation_metrics;
  std::optional<std::string> user_metadata;
  std::optional<StringMap> tags;
  std::optional<std::string> engine_info;
  std::optional<std::string> txn_id;
  /// Our own member `fleuve`: {queryId, batchId, offsets}; null where it is absent.
  Json fleuve;
};

/// Only in v2 checkpoints.
struct CheckpointMetadata {
  std::int64_t version = 0;
};
struct SidecarFile {
  std::string path;
  std::int64_t size_in_bytes = 0;
  std::int64_t modification_time = 0;
};

using Action = std::variant<AddFile, RemoveFile, AddCdcFile, Metadata, Protocol, SetTransaction, DomainMetadata,
                            CommitInfo, CheckpointMetadata, SidecarFile>;

/// Appends the action's JSON line (with its line break) to `out`: keys in Spark's order, absent members left out.
void AppendJsonLine(std::string& out, const Action& action);
std::string ToJsonLine(const Action& action);

/// Parses a commit file (or a JSON checkpoint). Action kinds and members that are not known are skipped, as the
/// protocol asks. DELTA_... kCorrupt with the line's number otherwise. \param path  for messages.
Result<std::vector<Action>> ParseActions(std::string_view text, std::string_view path);

/// `_delta_log/00000000000000000012.json` below a table path.
std::string CommitPath(std::string_view table_path, std::int64_t version);
std::string LogFolder(std::string_view table_path);

/// The engineInfo of our commits.
std::string EngineInfo();

}  // namespace fleuve::delta
