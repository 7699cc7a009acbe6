#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "state/segment_internal.h"

namespace fleuve::state {

namespace {

constexpr std::size_t kFewestSlots = 4;
/// Values up to here get no room to grow.
constexpr std::size_t kSmallValue = 64;
constexpr std::size_t kFirstRoom = 128;

std::size_t Rounded(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

/// At most three quarters of the slots are taken.
bool Fits(std::size_t rows, std::size_t slots) { return rows * 4 <= slots * 3; }

}  // namespace

Segment::~Segment() {
  std::free(slots_);
  std::free(bytes_);
}

std::size_t Segment::RoomFor(std::size_t key_size, std::size_t value_size) {
  const std::size_t bytes = sizeof(Head) + key_size + value_size;
  // Values that grow (lists, sets) are not moved with each change.
  return Rounded(bytes, value_size <= kSmallValue ? kStep : std::max(kStep, std::bit_floor(bytes) / 4));
}

void Segment::SetSlots(std::size_t count) {
  auto* slots = static_cast<Slot*>(std::calloc(count, sizeof(Slot)));
  if (slots == nullptr) {
    throw std::bad_alloc();
  }
  for (std::size_t i = 0; i < slot_count_; ++i) {
    if (slots_[i].at == 0) {
      continue;
    }
    std::size_t at = slots_[i].tag & (count - 1);
    while (slots[at].at != 0) {
      at = (at + 1) & (count - 1);
    }
    slots[at] = slots_[i];
  }
  std::free(slots_);
  slots_ = slots;
  slot_count_ = count;
}

void Segment::SetRoom(std::size_t bytes) {
  auto* larger = static_cast<char*>(std::realloc(bytes_, bytes));
  if (larger == nullptr) {
    throw std::bad_alloc();
  }
  bytes_ = larger;
  room_ = bytes;
}

void Segment::Reserve(std::size_t rows, std::size_t bytes) {
  std::size_t slots = std::max(kFewestSlots, slot_count_);
  while (!Fits(rows, slots)) {
    slots *= 2;
  }
  if (slots > slot_count_) {
    SetSlots(slots);
  }
  if (bytes > room_) {
    SetRoom(Rounded(bytes, kStep));
  }
}

std::uint32_t Segment::Append(std::string_view key, std::string_view value) {
  const std::size_t needed = RoomFor(key.size(), value.size());
  if (used_ + needed > room_) {
    const std::size_t larger = used_ + needed + std::max(kFirstRoom, used_ / 4);
    SetRoom(Rounded(larger, larger > 8192 ? 1024 : kStep));
  }
  char* row = bytes_ + used_;
  const Head head{static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
  std::memcpy(row, &head, sizeof(head));
  std::memcpy(row + sizeof(head), key.data(), key.size());
  if (!value.empty()) {
    std::memcpy(row + sizeof(head) + key.size(), value.data(), value.size());
  }
  const auto at = static_cast<std::uint32_t>(used_ / kStep + 1);
  used_ += needed;
  return at;
}

void Segment::Load(Pager& pager) {
  slots_ = static_cast<Slot*>(std::malloc(slot_count_ * sizeof(Slot)));
  bytes_ = static_cast<char*>(std::malloc(used_));
  if (slots_ == nullptr || bytes_ == nullptr) {
    std::free(std::exchange(slots_, nullptr));
    std::free(std::exchange(bytes_, nullptr));
    throw std::bad_alloc();
  }
  room_ = used_;
  changed_ = false;
  if (!pager.Read(extent_, {reinterpret_cast<char*>(slots_), slot_count_ * sizeof(Slot), bytes_, used_})) {
    Drop(pager);
  }
}

bool Segment::Spill(Pager& pager) {
  if (rows_ == 0) {
    Empty();
    return true;
  }
  if (slots_ == nullptr) {
    return true;
  }
  if (changed_ && garbage_ > used_ / 4) {
    Pack();
  }
  if (changed_ &&
      !pager.Write({reinterpret_cast<char*>(slots_), slot_count_ * sizeof(Slot), bytes_, used_}, &extent_)) {
    return false;
  }
  changed_ = false;
  std::free(std::exchange(slots_, nullptr));
  std::free(std::exchange(bytes_, nullptr));
  room_ = 0;
  return true;
}

void Segment::Drop(Pager& pager) {
  Empty();
  pager.Free(&extent_);
}

void Segment::Empty() {
  std::free(std::exchange(slots_, nullptr));
  std::free(std::exchange(bytes_, nullptr));
  slot_count_ = rows_ = used_ = room_ = garbage_ = 0;
  changed_ = true;
}

void Segment::Insert(std::uint64_t hash, std::string_view key, std::string_view value) {
  changed_ = true;
  if (!Fits(rows_ + 1, slot_count_)) {
    SetSlots(std::max(kFewestSlots, slot_count_ * 2));
  }
  const std::uint32_t tag = TagOf(hash);
  const std::uint32_t row = Append(key, value);
  std::size_t at = tag & (slot_count_ - 1);
  while (slots_[at].at != 0) {
    at = (at + 1) & (slot_count_ - 1);
  }
  slots_[at] = Slot{tag, row};
  ++rows_;
}

void Segment::Replace(std::uint64_t hash, std::string_view key, std::string_view value) {
  changed_ = true;
  Slot& slot = slots_[SlotOf(TagOf(hash), key)];
  const Head old = HeadAt(slot.at);
  const std::size_t had = RoomFor(old.key_size, old.value_size);
  const std::size_t needed = RoomFor(old.key_size, value.size());
  if (needed > had) {
    slot.at = Append(key, value);
    garbage_ += had;
    if (garbage_ > used_ / 2) {
      Pack();
    }
    return;
  }
  garbage_ += had - needed;
  char* row = RowAt(slot.at);
  const Head head{old.key_size, static_cast<std::uint32_t>(value.size())};
  std::memcpy(row, &head, sizeof(head));
  if (!value.empty()) {
    std::memmove(row + sizeof(head) + old.key_size, value.data(), value.size());
  }
}

void Segment::Remove(std::uint64_t hash, std::string_view key) {
  changed_ = true;
  std::size_t at = SlotOf(TagOf(hash), key);
  const Head old = HeadAt(slots_[at].at);
  garbage_ += RoomFor(old.key_size, old.value_size);
  slots_[at].at = 0;
  --rows_;
  // Rows behind that were pushed past this slot move up, so that no search ends early.
  std::size_t next = (at + 1) & (slot_count_ - 1);
  while (slots_[next].at != 0) {
    const std::size_t home = slots_[next].tag & (slot_count_ - 1);
    const bool stays = at < next ? home > at && home <= next : home > at || home <= next;
    if (!stays) {
      slots_[at] = slots_[next];
      slots_[next].at = 0;
      at = next;
    }
    next = (next + 1) & (slot_count_ - 1);
  }
  if (rows_ == 0) {
    Empty();
    return;
  }
  if (slot_count_ > 64 && rows_ < slot_count_ / 8) {
    SetSlots(slot_count_ / 4);
  }
  if (garbage_ > used_ / 2) {
    Pack();
  }
}

void Segment::Pack() {
  const std::size_t live = used_ - garbage_;
  const std::size_t room = Rounded(live + live / 4 + kFirstRoom, kStep);
  auto* packed = static_cast<char*>(std::malloc(room));
  if (packed == nullptr) {
    throw std::bad_alloc();
  }
  std::size_t used = 0;
  for (std::size_t i = 0; i < slot_count_; ++i) {
    Slot& slot = slots_[i];
    if (slot.at == 0) {
      continue;
    }
    const Head head = HeadAt(slot.at);
    std::memcpy(packed + used, RowAt(slot.at), sizeof(Head) + head.key_size + head.value_size);
    slot.at = static_cast<std::uint32_t>(used / kStep + 1);
    used += RoomFor(head.key_size, head.value_size);
  }
  std::free(bytes_);
  bytes_ = packed;
  room_ = room;
  used_ = used;
  garbage_ = 0;
}

}  // namespace fleuve::state
