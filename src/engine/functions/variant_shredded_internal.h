#pragma once

/// \file
/// Shredded variants of Parquet files: groups of `metadata`, `value` (what is not shredded) and `typed_value` (what
/// is), where fields and elements of `typed_value` are groups of `value` and `typed_value` again.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/duckdb_pch.h"

namespace fleuve::engine {

/// Puts the values of shredded groups together. Threads: may be shared.
class VariantAssembler {
 public:
  /// \param group  the struct that carries the whole group, with its names in the file. Raises kUnsupported for types
  /// that no variant holds.
  explicit VariantAssembler(const duckdb::LogicalType& group);

  /// Writes rows 0..count-1 of `groups` as variants (carrier: struct of value and metadata) to `out`. A NULL group is a
  /// NULL variant. Raises MALFORMED_VARIANT where the parts contradict each other.
  void Assemble(duckdb::Vector& groups, duckdb::idx_t count, duckdb::Vector& out) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
  std::size_t metadata_ = 0;  ///< which child of the group
};

}  // namespace fleuve::engine
