#pragma once

/// \file
/// The state of one side of a join of two streams: rows by key, found again by their time.
///
/// Three spaces of the operator's store, `counts` (key -> number of rows), `rows` (key and number -> matched flag,
/// time, row) and `times` (time, key and number; only rows that can expire). The numbers of a key's rows have no gaps:
/// the last row takes the place of one that goes.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operators/row_codec_internal.h"
#include "state/store.h"

namespace fleuve::operators {

/// Threads: the query's loop thread.
class JoinSide {
 public:
  /// \param first_space  `counts`; `rows` and `times` follow it.
  JoinSide(state::Store& store, state::SpaceId first_space) : store_(store), counts_(first_space) {}

  struct Row {
    std::string_view bytes;
    /// `kNoTime`: it does not expire.
    std::int64_t time = kNoTime;
    bool matched = false;
  };
  std::uint64_t Count(std::string_view key) const;
  /// Row `number` of a key. kCorrupt where it is not there. The view stays valid until the next change of the store.
  Result<Row> Get(std::string_view key, std::uint64_t number) const;
  void Add(std::string_view key, std::string_view bytes, std::int64_t time, bool matched);
  /// Sets the matched flag of a row that is there.
  Result<void> SetMatched(std::string_view key, std::uint64_t number);
  /// Removes every row whose time is at or below `limit`; `gone` sees each before it goes, and must not change the
  /// store. Gives their number.
  Result<std::int64_t> Expire(std::int64_t limit, const std::function<Result<void>(const Row& row)>& gone);
  /// Keys and rows, as numRowsTotal counts them.
  std::int64_t entry_count() const { return store_.row_count(counts_) + store_.row_count(rows()); }

 private:
  state::SpaceId rows() const { return counts_ + 1; }
  state::SpaceId times() const { return counts_ + 2; }
  void Put(const std::string& row_key, const Row& row);

  state::Store& store_;
  state::SpaceId counts_;
};

}  // namespace fleuve::operators
