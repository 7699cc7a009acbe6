#pragma once

/// \file
/// The state of one side of a join of two streams: rows by key, found again by their time.
///
/// Three spaces of the operator's store:
///
///   rows    key -> first and last further chunk, then rows; key and chunk number -> more rows of the key
///   times   time, key and chunk number, for rows that can expire
///   totals  one entry: numbers of keys and rows
///
/// Most keys have a row or two, which lie in one entry; a key with many has chunks, so that a new row writes no more
/// than one of them.

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
  static constexpr std::size_t kSpaces = 3;
  /// Keys that are worth a `Near` together.
  static constexpr std::size_t kNearRows = 256;

  /// \param first_space  `rows`; the others follow it.
  JoinSide(state::Store& store, state::SpaceId first_space);

  struct Row {
    std::string_view bytes;
    /// `kNoTime`: it does not expire.
    std::int64_t time = kNoTime;
    bool matched = false;
    /// Where it lies: its chunk (0: the key's own entry) and its place in it.
    std::uint32_t chunk = 0;
    std::uint32_t place = 0;
  };
  using Visit = std::function<Result<void>(const Row& row)>;

  /// Looks `count` keys up together, so that what is asked of them next lies near: many lookups wait for the memory
  /// side by side.
  void Near(const state::ByteRows& keys, std::size_t first, std::size_t count);
  /// The rows of a key, the last `Near`'s key `near`. Views stay valid until the next change of the store; other sides
  /// of it do not change it between `Near` and this.
  Result<void> Each(std::string_view key, std::size_t near, const Visit& visit) const;
  Result<void> Add(std::string_view key, std::string_view bytes, std::int64_t time, bool matched);
  /// Sets the matched flag of a row that `Each` gave; places stay as they are.
  Result<void> SetMatched(std::string_view key, std::uint32_t chunk, std::uint32_t place);
  /// Removes every row whose time is at or below `limit`; `gone` sees each before it goes, and must not change the
  /// store. Gives their number.
  Result<std::int64_t> Expire(std::int64_t limit, const Visit& gone);
  /// Writes what is left to write; once, at the end of a batch.
  void Finish();

  /// The rows that wait on a side; numRowsTotal counts each once.
  static std::int64_t RowCount(const state::Store& store, state::SpaceId first_space);

 private:
  /// Puts the times of the rows that were added.
  void PutTimes();
  state::SpaceId times() const { return rows_ + 1; }
  state::SpaceId totals() const { return rows_ + 2; }
  Result<void> ExpireChunk(std::string_view key, std::uint32_t chunk, std::int64_t limit, const Visit& gone,
                           std::int64_t* count);

  state::Store& store_;
  state::SpaceId rows_;
  std::int64_t key_count_ = 0;
  std::int64_t row_count_ = 0;
  // Kept for their memory.
  std::string value_;
  state::ByteRows new_times_;
  state::ByteRows no_values_;
  state::ByteRows near_keys_;
  /// Of `near_keys_`; empty once the store has changed.
  std::vector<std::string_view> near_values_;
};

}  // namespace fleuve::operators
