#pragma once

/// \file
/// Rows of a table whose hashes begin with the same bits: slots, and one piece of memory with keys and values.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "state/pager_internal.h"

namespace fleuve::state {

/// 64 bits that depend on every byte of a key. Not for files: it may become another one.
inline std::uint64_t HashKey(std::string_view key) {
  constexpr std::uint64_t kOdd1 = 0x9E3779B97F4A7C15ULL;
  constexpr std::uint64_t kOdd2 = 0xC2B2AE3D27D4EB4FULL;
  const auto mix = [](std::uint64_t a, std::uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  // Loads of a fixed width, which may overlap at the end.
  const auto wide = [](const char* from) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof(word));
    return word;
  };
  const auto narrow = [](const char* from) {
    std::uint32_t word = 0;
    std::memcpy(&word, from, sizeof(word));
    return std::uint64_t{word};
  };
  const char* at = key.data();
  std::size_t left = key.size();
  std::uint64_t hash = kOdd2 ^ left;
  for (; left > 16; at += 16, left -= 16) {
    hash = mix(wide(at) ^ kOdd1, wide(at + 8) ^ hash);
  }
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  if (left >= 8) {
    a = wide(at);
    b = wide(at + left - 8);
  } else if (left >= 4) {
    a = narrow(at);
    b = narrow(at + left - 4);
  } else if (left > 0) {
    const auto byte = [at](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(at[i])}; };
    a = byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1);
  }
  return mix(mix(a ^ kOdd1, b ^ hash) ^ kOdd1, key.size() ^ kOdd2);
}

/// Threads: one at a time. Throws std::bad_alloc where memory ends, and is as it was.
class Segment {
 public:
  /// `depth` bits of the hashes are alike.
  explicit Segment(int depth) : depth_(depth) {}
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// A view without data where the key is absent.
  std::string_view Find(std::uint64_t hash, std::string_view key) const {
    if (rows_ == 0) {
      return {};
    }
    const Slot& slot = slots_[SlotOf(TagOf(hash), key)];
    return slot.at == 0 ? std::string_view() : ValueAt(slot.at);
  }
  /// The key is absent.
  void Insert(std::uint64_t hash, std::string_view key, std::string_view value);
  /// The key is there.
  void Replace(std::uint64_t hash, std::string_view key, std::string_view value);
  /// The key is there.
  void Remove(std::uint64_t hash, std::string_view key);
  /// Makes slots for `rows` rows and memory for `bytes` bytes of them.
  void Reserve(std::size_t rows, std::size_t bytes);

  /// False: its rows lie in the pager's file alone. Only `Load`, `Spill`, `Drop` and what it counts serve then.
  bool is_resident() const { return slots_ != nullptr || rows_ == 0; }
  /// Brings the rows back. Where that fails they are lost, and the pager tells.
  void Load(Pager& pager);
  /// Writes the rows where they changed, and frees their memory. False where that failed.
  bool Spill(Pager& pager);
  /// Forgets the rows, and their place in the file.
  void Drop(Pager& pager);
  /// Set when it is asked for; whoever looks for segments to spill takes it back.
  bool used_of_late = false;
  /// Where it stands among the segments of its table that may be spilled; -1: not there.
  std::int32_t place_among_resident = -1;

  /// Calls `visit(key, value)` for each row; it gives false to stop.
  template <typename Visit>
  bool Each(const Visit& visit) const {
    for (std::size_t i = 0; i < slot_count_; ++i) {
      if (slots_[i].at != 0 && !visit(KeyAt(slots_[i].at), ValueAt(slots_[i].at))) {
        return false;
      }
    }
    return true;
  }
  /// The same for rows whose hashes may begin with these 44 bits.
  template <typename Visit>
  bool EachLike(std::uint64_t hash_start, const Visit& visit) const {
    if (rows_ == 0) {
      return true;
    }
    const auto tag = static_cast<std::uint32_t>(hash_start);
    for (std::size_t at = tag & (slot_count_ - 1); slots_[at].at != 0; at = (at + 1) & (slot_count_ - 1)) {
      if (slots_[at].tag == tag && !visit(KeyAt(slots_[at].at), ValueAt(slots_[at].at))) {
        return false;
      }
    }
    return true;
  }

  /// Where a search for the hash begins, and the row that it finds first: to be prefetched; null where there is none.
  const void* SlotNear(std::uint64_t hash) const {
    return slots_ == nullptr ? nullptr : &slots_[TagOf(hash) & (slot_count_ - 1)];
  }
  const char* RowNear(std::uint64_t hash) const {
    const auto* slot = static_cast<const Slot*>(SlotNear(hash));
    return slot == nullptr || slot->at == 0 ? nullptr : RowAt(slot->at);
  }

  int depth() const { return depth_; }
  std::size_t rows() const { return rows_; }
  /// Bytes of its rows with what stands between them.
  std::size_t used_bytes() const { return used_ - garbage_; }
  std::size_t memory_bytes() const {
    return sizeof(Segment) + (slots_ == nullptr ? 0 : slot_count_ * sizeof(Slot) + room_ + kPerPiece * 2);
  }
  /// True where one more row calls for two segments instead of one.
  bool IsFull(std::size_t most_rows, std::size_t most_bytes) const {
    return rows_ >= most_rows || (rows_ > 1 && used_ - garbage_ >= most_bytes);
  }

 private:
  struct Slot {
    std::uint32_t tag;
    /// Where the row begins, in steps of eight bytes from 1; 0: free.
    std::uint32_t at;
  };
  /// In front of each row; key and value follow.
  struct Head {
    std::uint32_t key_size;
    std::uint32_t value_size;
  };
  static constexpr std::size_t kStep = 8;
  /// What the allocator adds to a piece of memory.
  static constexpr std::size_t kPerPiece = 16;

  /// The part of a hash that slots hold. Directories use bits in front of it.
  static std::uint32_t TagOf(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 20); }
  /// Bytes that a row takes: larger values have room to grow.
  static std::size_t RoomFor(std::size_t key_size, std::size_t value_size);

  char* RowAt(std::uint32_t at) const { return bytes_ + (static_cast<std::size_t>(at) - 1) * kStep; }
  Head HeadAt(std::uint32_t at) const {
    Head head;
    std::memcpy(&head, RowAt(at), sizeof(head));
    return head;
  }
  std::string_view KeyAt(std::uint32_t at) const { return {RowAt(at) + sizeof(Head), HeadAt(at).key_size}; }
  std::string_view ValueAt(std::uint32_t at) const {
    const Head head = HeadAt(at);
    return {RowAt(at) + sizeof(Head) + head.key_size, head.value_size};
  }
  /// The slot of the key, or the free slot where it belongs. There are slots.
  std::size_t SlotOf(std::uint32_t tag, std::string_view key) const {
    std::size_t at = tag & (slot_count_ - 1);
    while (slots_[at].at != 0 && (slots_[at].tag != tag || KeyAt(slots_[at].at) != key)) {
      at = (at + 1) & (slot_count_ - 1);
    }
    return at;
  }
  /// Writes a row at the end of the memory.
  std::uint32_t Append(std::string_view key, std::string_view value);
  void SetSlots(std::size_t count);
  void SetRoom(std::size_t bytes);
  /// Moves the rows together.
  void Pack();
  void Empty();

  Slot* slots_ = nullptr;
  char* bytes_ = nullptr;
  std::size_t slot_count_ = 0;
  std::size_t rows_ = 0;
  std::size_t used_ = 0;
  std::size_t room_ = 0;
  /// Bytes below `used_` that belong to no row any more.
  std::size_t garbage_ = 0;
  Extent extent_;
  int depth_ = 0;
  /// The rows differ from what the file has.
  bool changed_ = true;
};

}  // namespace fleuve::state
