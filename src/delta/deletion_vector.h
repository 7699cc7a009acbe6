#pragma once

/// \file
/// Deletion vectors: which rows of a file are gone.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "plan/scan.h"
#include "storage/object_store.h"

namespace fleuve::delta {

/// Row numbers, ascending.
class RowSet final : public plan::DeletedRows {
 public:
  explicit RowSet(std::vector<std::uint64_t> rows) : rows_(std::move(rows)) {}
  std::int64_t count() const override { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t Keep(std::int64_t start, std::int64_t count, std::uint32_t* kept) const override;
  const std::vector<std::uint64_t>& rows() const { return rows_; }

 private:
  std::vector<std::uint64_t> rows_;
};

/// Loads (or finds in the process's cache) the vector. kNotFound, DELTA_DELETION_VECTOR_* (kCorrupt).
Result<std::shared_ptr<const RowSet>> LoadDeletionVector(const DeletionVectorDescriptor& descriptor,
                                                         const storage::Location& table);
/// Absolute path of a vector's file below `table`; empty for inline ones.
Result<std::string> DeletionVectorPath(const DeletionVectorDescriptor& descriptor, const storage::Location& table);

/// Vectors of one commit, in one new file.
struct WrittenDeletionVectors {
  /// One per vector, in order.
  std::vector<DeletionVectorDescriptor> descriptors;
  /// Absolute path of the file; not synced.
  std::string file;
};
/// Writes vectors into the table's folder. \param vectors  row numbers, ascending, each without duplicates and not
/// empty.
Result<WrittenDeletionVectors> WriteDeletionVectors(const std::vector<std::vector<std::uint64_t>>& vectors,
                                                    const storage::Location& table);

std::string Z85Encode(std::string_view bytes);
Result<std::string> Z85Decode(std::string_view text);

}  // namespace fleuve::delta
