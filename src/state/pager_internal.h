#pragma once

/// \file
/// Segments of tables that were not used of late lie in a file, so that the tables keep to a limit of memory.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace fleuve::state {

class RowTable;

/// A place in the file, and the check sum of what lies there; `pages` 0: none.
struct Extent {
  std::int64_t first_page = 0;
  std::uint64_t check = 0;
  std::uint32_t pages = 0;
};

/// Two pieces of memory that lie behind each other in the file.
struct TwoPieces {
  char* first = nullptr;
  std::size_t first_size = 0;
  char* second = nullptr;
  std::size_t second_size = 0;
};

/// One per store. Threads: the store's.
///
/// A failed write leaves a segment in memory, a failed read (or bytes that are not those that were written) leaves it
/// empty: `error` tells from then on, and nothing that was made of such rows may be committed.
class Pager {
 public:
  /// \param folder  where the file lies; it has no name there and goes with the process. \param limit_bytes  what
  /// segments may take of memory.
  static Result<std::unique_ptr<Pager>> Make(const std::string& folder, std::int64_t limit_bytes);
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;

  void Attach(RowTable* table) { tables_.push_back(table); }
  /// Writes segments until the limit is kept, as long as they take more than a small part of it: what else the tables
  /// take (directories, times) cannot be written, and who finds no room beside it would read and write at each call.
  /// Costs nothing that grows with the rows of the tables. Not while rows of a segment are looked at.
  void Settle();

  /// False: `error` tells why. Takes a new place where the bytes do not fit the old one.
  bool Write(const TwoPieces& pieces, Extent* extent);
  bool Read(const Extent& extent, const TwoPieces& pieces);
  void Free(Extent* extent) noexcept;
  const std::optional<Error>& error() const { return error_; }
  /// Gives the whole file back; no segment has a place in it any more.
  void Clear();

 private:
  Pager(int file, std::int64_t limit_bytes) : file_(file), limit_bytes_(limit_bytes) {}

  int file_ = -1;
  std::int64_t limit_bytes_ = 0;
  std::vector<RowTable*> tables_;
  std::size_t next_table_ = 0;
  std::int64_t page_count_ = 0;
  /// Free places by their number of pages.
  std::map<std::uint32_t, std::vector<std::int64_t>> free_;
  std::optional<Error> error_;
};

}  // namespace fleuve::state
