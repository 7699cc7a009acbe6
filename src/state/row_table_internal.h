#pragma once

/// \file
/// The rows of one space in memory: an open hash table over records of key and value bytes, and for timed spaces an
/// index of records by time.

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

namespace fleuve::state {

/// 64 bits that depend on every byte; the same in every process (files carry it as their check sum).
std::uint64_t HashBytes(std::string_view bytes);

/// Threads: one at a time.
class RowTable {
 public:
  explicit RowTable(bool timed) : timed_(timed) {}
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
  void Grow();
  void Insert(std::size_t at, std::uint64_t hash, std::string_view key, std::string_view value);
  void Index(Record* record);
  void Unindex(Record* record);
  static std::int64_t BucketOf(std::int64_t micros) { return micros >> kBucketShift; }

  /// Records whose times agree but for the last 20 bits (about a second) share a bucket.
  static constexpr int kBucketShift = 20;

  bool timed_ = false;
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
  std::int64_t payload_bytes_ = 0;
  std::int64_t record_bytes_ = 0;
  std::map<std::int64_t, std::vector<Record*>> buckets_;
};

}  // namespace fleuve::state
