#pragma once

/// \file
/// Which files cannot hold a matching row: interval arithmetic over partition values and statistics.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "delta/actions.h"
#include "plan/expr.h"

namespace fleuve::delta {

/// Compiled once per scan. Threads: one at a time.
class FileFilter {
 public:
  /// \param columns  one attribute per field of `schema`.
  static Result<FileFilter> Make(const Metadata& metadata, const types::Schema& schema,
                                 const std::vector<plan::ExprPtr>& filters,
                                 const std::vector<plan::Attribute>& columns);
  /// False only where no row of the file can make all filters true.
  bool MayMatch(const AddFile& file) const;
  /// The same by partition values alone.
  bool PartitionMayMatch(const PartitionValues& values) const;
  /// True where a filter looks at something else than partition columns and constants.
  bool needs_statistics() const { return needs_statistics_; }

  struct Column {
    std::string physical_name;
    types::DataType type;  ///< logical, with physical names in metadata
    bool is_partition = false;
  };

 private:
  std::map<plan::AttributeId, Column> columns_;
  std::vector<plan::ExprPtr> filters_;
  bool needs_statistics_ = false;
};

/// Name of a field in files, statistics and partition values: its physical name under column mapping.
std::string PhysicalName(const types::StructField& field, const Metadata& metadata);
/// `none`, `name` or `id`.
std::string ColumnMappingMode(const Metadata& metadata);

/// -1, 0, 1 for two values of one type (doubles: NaN is the greatest); nullopt where they do not compare.
std::optional<int> CompareValues(const types::Value& a, const types::Value& b);

}  // namespace fleuve::delta
