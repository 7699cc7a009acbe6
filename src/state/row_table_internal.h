#pragma once

/// \file
/// The rows of one space in memory: segments of rows whose hashes begin alike, found through a directory; for timed
/// spaces an index of rows by time.
///
/// A segment that is full is split in two, so no row added costs more than a few hundred others, however many there
/// are. The rows of a segment lie in one piece of memory.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "state/byte_rows.h"
#include "state/segment_internal.h"

namespace fleuve::state {

/// Where the time of a row stands: nowhere, or in the first eight bytes of its key or of its value.
enum class Timing { kNone, kKey, kValue };

/// Threads: one at a time. With a pager, views into rows are good until the next call alone. Throws std::bad_alloc
/// where memory ends; only `Clear` is of use then.
class RowTable {
 public:
  /// \param pager  null: all rows stay in memory. It must outlive the table.
  explicit RowTable(Timing timing, Pager* pager = nullptr);
  ~RowTable();
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  /// A view without data where the key is absent. `hash` is HashKey(key), here and below.
  std::string_view Find(std::uint64_t hash, std::string_view key) const { return SegmentOf(hash).Find(hash, key); }
  std::string_view Find(std::string_view key) const { return Find(HashKey(key), key); }
  /// Sets the value of a key; true where the key was absent.
  bool Put(std::uint64_t hash, std::string_view key, std::string_view value);
  bool Put(std::string_view key, std::string_view value) { return Put(HashKey(key), key, value); }
  /// Puts the row if the key is absent; true where it was.
  bool Add(std::uint64_t hash, std::string_view key, std::string_view value);
  bool Add(std::string_view key, std::string_view value) { return Add(HashKey(key), key, value); }
  bool Remove(std::uint64_t hash, std::string_view key);
  bool Remove(std::string_view key) { return Remove(HashKey(key), key); }
  void Clear();
  /// Makes room for `rows` rows in an empty table.
  void Reserve(std::size_t rows);
  /// Takes all rows of another table of the same timing, whose hashes begin with a one, where this table has only rows
  /// whose hashes begin with a zero. Costs what their segments and times do, not their rows. Without a pager.
  void TakeUpperHalf(RowTable& upper);
  /// What a call for this hash will look at, one thing after the other: to be prefetched, some calls apart. (They give
  /// addresses, as a function that does nothing but to prefetch is one without effect to some compilers.)
  const void* SegmentNear(std::uint64_t hash) const { return directory_[Place(hash)]; }
  const void* SlotNear(std::uint64_t hash) const { return directory_[Place(hash)]->SlotNear(hash); }
  const void* RowNear(std::uint64_t hash) const { return directory_[Place(hash)]->RowNear(hash); }
  /// How many calls before.
  static constexpr std::size_t kSegmentSteps = 32;
  static constexpr std::size_t kSlotSteps = 20;
  static constexpr std::size_t kRowSteps = 10;
  class Ahead;

  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  void Scan(const Visit& visit) const;
  /// Timed tables only: rows with from <= time <= to, by ascending time.
  void Range(std::int64_t from, std::int64_t to, const Visit& visit) const;

  /// Visits whole segments from the hash `*position` on until `bytes` bytes of rows were seen, and moves `*position`
  /// behind them. False: there are no more.
  bool ScanSome(std::uint64_t* position, std::int64_t bytes,
                const std::function<void(std::string_view, std::string_view)>& visit) const;

  /// Keeps to the pager's limit again after a `Find`; all else does by itself.
  void Settle() const {
    if (pager_ != nullptr) {
      pager_->Settle();
    }
  }
  /// Moves segments that were not used since it last came by to the pager's file, until `bytes` are free or it has come
  /// round. Gives what it freed.
  std::int64_t SpillSome(std::int64_t bytes);

  /// What segments take of memory that could be spilled.
  std::int64_t resident_bytes() const {
    return segment_bytes_ - static_cast<std::int64_t>(segment_count_ * sizeof(Segment));
  }

  Timing timing() const { return timing_; }
  std::int64_t row_count() const { return row_count_; }
  /// Bytes of keys and values.
  std::int64_t payload_bytes() const { return payload_bytes_; }
  std::int64_t memory_bytes() const;

 private:
  struct Bucket {
    /// Of a row: the last 20 bits of its time, then the first 44 of its hash. A row that went or has another time now
    /// leaves its entry.
    std::vector<std::uint64_t> entries;
    bool is_sorted = true;
    /// No row has an earlier time.
    std::int64_t first_time = INT64_MAX;
    /// Rows that are there.
    std::int64_t live = 0;
  };

  std::size_t Place(std::uint64_t hash) const {
    return depth_ == 0 ? 0 : static_cast<std::size_t>(hash >> (64 - depth_));
  }
  Segment& SegmentOf(std::uint64_t hash) const {
    Segment& segment = *directory_[Place(hash)];
    if (pager_ != nullptr) {
      Use(segment);
    }
    return segment;
  }
  /// Brings a segment to memory, to stay until others need the room.
  void Use(Segment& segment) const {
    segment.used_of_late = true;
    if (segment.place_among_resident < 0) {
      Enter(segment);
    }
  }
  void Enter(Segment& segment) const;
  void Leave(Segment& segment) const;
  void Load(Segment& segment) const;
  bool Spill(Segment& segment) const;
  /// The segment of the hash, with room for one more row.
  Segment& WithRoom(std::uint64_t hash);
  bool MaySplit(const Segment& segment) const;
  void Split(std::size_t place);
  /// Empty segments, one per place.
  void Reset(int depth);
  void DropSegments();
  template <typename VisitSegment>
  bool EachSegment(const VisitSegment& visit) const;
  template <typename VisitRow>
  bool EachRow(Segment& segment, const VisitRow& visit) const;

  bool timed() const { return timing_ != Timing::kNone; }
  std::int64_t TimeIn(std::string_view key, std::string_view value) const;
  static std::int64_t BucketOf(std::int64_t micros) { return micros >> kBucketShift; }
  Bucket& BucketAt(std::int64_t number);
  void Index(std::uint64_t hash, std::int64_t time);
  void Unindex(std::int64_t time);
  /// Sorts a bucket's entries and drops those that were there twice.
  static void SortEntries(Bucket& bucket);
  /// Drops the entries without a row.
  void Tidy(std::int64_t number, Bucket& bucket) const;
  /// Calls `visit(key, value)` for the rows of an entry.
  template <typename VisitRow>
  bool EachOf(std::int64_t number, std::uint64_t entry, const VisitRow& visit) const;

  /// Rows whose times agree but for the last 20 bits (about a second) share a bucket.
  static constexpr int kBucketShift = 20;
  static constexpr int kHashBits = 64 - kBucketShift;

  const Timing timing_;
  Pager* const pager_;
  /// Rows of a segment at most. Those that come and go with a pager are small.
  const std::size_t most_rows_;
  const std::size_t most_bytes_;
  /// With a pager: the segments that may be spilled, and where `SpillSome` goes on among them.
  mutable std::vector<Segment*> resident_;
  std::size_t hand_ = 0;
  /// 2^depth_ places; a segment stands at each whose number begins with its bits. Owns the segments.
  int depth_ = 0;
  std::vector<Segment*> directory_;
  std::size_t segment_count_ = 0;
  std::int64_t row_count_ = 0;
  std::int64_t payload_bytes_ = 0;
  mutable std::int64_t segment_bytes_ = 0;
  /// Sorted when they are read.
  mutable std::map<std::int64_t, Bucket> buckets_;
  /// Buckets used of late, each at the place of its number's last bits; null where none is known.
  struct KnownBucket {
    std::int64_t number = 0;
    Bucket* bucket = nullptr;
  };
  static constexpr std::size_t kKnownBuckets = 64;
  KnownBucket& KnownPlace(std::int64_t number) {
    return known_buckets_[static_cast<std::uint64_t>(number) % kKnownBuckets];
  }
  std::array<KnownBucket, kKnownBuckets> known_buckets_{};
};

/// For loops over many keys: `Step(i)` before key i is looked up gives its hash. Keys are far apart in memory, and a
/// loop that asks for them a few steps ahead does not wait for each.
class RowTable::Ahead {
 public:
  Ahead(const RowTable& table, const ByteRows& keys) : table_(table), keys_(keys) {
    for (std::size_t i = 0; i < kSteps && i < keys.size(); ++i) {
      Begin(i);
    }
  }
  std::uint64_t Step(std::size_t i) {
    const std::uint64_t hash = hashes_[i % kSteps];
    if (i + kSteps < keys_.size()) {
      Begin(i + kSteps);
    }
    if (i + kSlotSteps < keys_.size()) {
      __builtin_prefetch(table_.SlotNear(hashes_[(i + kSlotSteps) % kSteps]));
    }
    if (i + kRowSteps < keys_.size()) {
      __builtin_prefetch(table_.RowNear(hashes_[(i + kRowSteps) % kSteps]));
    }
    return hash;
  }

 private:
  static constexpr std::size_t kSteps = kSegmentSteps;
  void Begin(std::size_t i) {
    hashes_[i % kSteps] = HashKey(keys_[i]);
    __builtin_prefetch(table_.SegmentNear(hashes_[i % kSteps]));
  }
  const RowTable& table_;
  const ByteRows& keys_;
  std::uint64_t hashes_[kSteps] = {};
};

}  // namespace fleuve::state
