#pragma once

/// \file
/// The rows of one space in memory: an open hash table over records of key and value bytes, and for timed spaces an
/// index of records by time.

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "state/byte_rows.h"

namespace fleuve::state {

/// 64 bits that depend on every byte; the same in every process (files carry it as their check sum).
std::uint64_t HashBytes(std::string_view bytes);

/// Where the time of a row stands: nowhere, or in the first eight bytes of its key or of its value.
enum class Timing { kNone, kKey, kValue };

/// Threads: one at a time.
class RowTable {
 public:
  explicit RowTable(Timing timing) : timing_(timing) {}
  ~RowTable();
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  /// A view without data where the key is absent.
  std::string_view Find(std::string_view key) const;
  /// Sets the value of a key; true where the key was absent.
  bool Put(std::string_view key, std::string_view value);
  /// Puts the row if the key is absent; true where it was.
  bool Add(std::string_view key, std::string_view value);
  bool Remove(std::string_view key);
  void Clear();
  /// Makes room for `rows` rows in all, so that putting them does not grow the table.
  void Reserve(std::size_t rows);
  /// Brings what the next calls for these keys will look at nearer to the processor.
  class Ahead;

  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  void Scan(const Visit& visit) const;
  /// Timed tables only: rows with from <= time <= to, by ascending time.
  void Range(std::int64_t from, std::int64_t to, const Visit& visit) const;

  std::int64_t row_count() const { return static_cast<std::int64_t>(count_); }
  /// Bytes of keys and values.
  std::int64_t payload_bytes() const { return payload_bytes_; }
  std::int64_t memory_bytes() const;

 private:
  struct Record;
  struct Slot {
    std::uint64_t hash = 0;
    Record* record = nullptr;
  };

  std::size_t Home(std::uint64_t hash) const { return static_cast<std::size_t>(hash) & (slots_.size() - 1); }
  /// The slot of the key, or the free slot where it belongs. The table is not empty.
  std::size_t SlotOf(std::uint64_t hash, std::string_view key) const;
  void Grow(std::size_t slots);
  void Insert(std::size_t at, std::uint64_t hash, std::string_view key, std::string_view value);
  void Index(Record* record);
  void Unindex(Record* record);
  std::int64_t TimeOfRecord(const Record* record) const;
  bool timed() const { return timing_ != Timing::kNone; }
  static std::int64_t BucketOf(std::int64_t micros) { return micros >> kBucketShift; }

  /// Records whose times agree but for the last 20 bits (about a second) share a bucket.
  static constexpr int kBucketShift = 20;

  Timing timing_ = Timing::kNone;
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
  std::int64_t payload_bytes_ = 0;
  std::int64_t record_bytes_ = 0;
  std::map<std::int64_t, std::vector<Record*>> buckets_;
  /// The bucket used last; null where it is not known.
  std::int64_t last_bucket_time_ = 0;
  std::vector<Record*>* last_bucket_ = nullptr;
};

/// For loops over many keys: `Step(i)` before key i is looked up. Keys are far apart in memory, and a loop that asks
/// for them a few steps ahead does not wait for each.
class RowTable::Ahead {
 public:
  Ahead(const RowTable& table, const ByteRows& keys) : table_(table), keys_(keys) {
    for (std::size_t i = 0; i < kSteps && i < keys.size(); ++i) {
      Slots(i);
    }
  }
  void Step(std::size_t i) {
    if (i + kSteps < keys_.size()) {
      Slots(i + kSteps);
    }
    if (i + kSteps / 2 < keys_.size()) {
      Records(i + kSteps / 2);
    }
  }

 private:
  static constexpr std::size_t kSteps = 16;
  void Slots(std::size_t i);
  void Records(std::size_t i);
  const RowTable& table_;
  const ByteRows& keys_;
  std::uint64_t hashes_[kSteps] = {};
};

}  // namespace fleuve::state
