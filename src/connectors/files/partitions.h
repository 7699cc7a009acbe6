#pragma once

/// \file
/// Columns that stand in folder names: `year=2024/month=5`.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "connectors/files/file_listing.h"
#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::connectors::files {

/// The `key=value` levels of a file's folder below `base`, outermost first; values decoded, nullopt for
/// `__HIVE_DEFAULT_PARTITION__`. Levels of another form are left out.
std::vector<std::pair<std::string, std::optional<std::string>>> PartitionLevels(const std::string& base,
                                                                                const std::string& file);

/// Value of a partition column; kInvalidArgument where the text does not fit the type.
Result<types::Value> PartitionValue(const std::optional<std::string>& text, const types::DataType& type,
                                    const std::string& zone);

/// The narrowest type for all values, as Spark infers it: int, bigint, decimal, double, date, timestamp, string.
types::DataType InferPartitionType(const std::vector<std::optional<std::string>>& values, const std::string& zone);

/// Partition columns of a set of files, and each file's values.
struct Partitioning {
  types::Schema schema = types::DataType::Struct({});
  /// One list per file that belongs to a partition; files outside have no entry in `files`.
  std::vector<ListedFile> files;
  std::vector<std::vector<std::optional<std::string>>> values;
};

/// Spark's partition discovery. \param bases  base folder of each file, same order. \param user_schema  types of
/// columns that the user has named win. \param infer  false: all strings. CONFLICTING_PARTITION_COLUMN_NAMES,
/// CONFLICTING_DIRECTORY_STRUCTURES.
Result<Partitioning> DiscoverPartitions(const std::vector<ListedFile>& files, const std::vector<std::string>& bases,
                                        const std::optional<types::Schema>& user_schema, bool infer,
                                        bool case_sensitive, const std::string& zone);

}  // namespace fleuve::connectors::files
