#pragma once

/// \file
/// Fills the tables of a store from its files.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "state/changelog_internal.h"
#include "state/row_table_internal.h"

namespace fleuve::state {

/// Rows whose hashes begin with a one are put by a thread of its own where a file is large: each thread has its tables,
/// and `Finish` makes one of two. A start is bound by how fast memory answers, and two ask twice as much.
///
/// Threads: one caller. Throws std::bad_alloc where memory ends.
class Loader {
 public:
  /// \param tables  one per space, empty; they must outlive the loader. \param two_threads  false where they share a
  /// pager.
  Loader(const std::vector<std::unique_ptr<RowTable>>& tables, bool two_threads);

  /// How many rows of each space are about to come.
  void Reserve(const std::vector<std::int64_t>& space_rows);
  /// Puts and removes what a file says; files come in the order they were written in.
  Result<void> Add(const ParsedFile& file, const std::string& path);
  /// The tables hold all rows. Nothing else may be asked of them before.
  void Finish();
  /// What rows take that `tables` do not hold yet.
  std::int64_t memory_bytes() const;

 private:
  struct Half {
    const Loader& loader;
    const bool only_one;
    const std::uint64_t which;
    Result<void> Add(const ParsedFile& file, const std::string& path) const;
  };

  RowTable& TableOf(SpaceId space, std::uint64_t hash) const {
    return *(upper_.empty() || hash >> 63 == 0 ? tables_ : upper_)[space];
  }

  const std::vector<std::unique_ptr<RowTable>>& tables_;
  /// Empty with one thread.
  std::vector<std::unique_ptr<RowTable>> upper_;
};

}  // namespace fleuve::state
