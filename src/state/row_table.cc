#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "state/row_table_internal.h"
#include "state/store.h"

namespace fleuve::state {

namespace {

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t Word(const char* from, std::size_t count) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, count);
  return word;
}

constexpr std::uint64_t kOdd1 = 0x9E3779B97F4A7C15ULL;
constexpr std::uint64_t kOdd2 = 0xC2B2AE3D27D4EB4FULL;
constexpr std::size_t kFirstSlots = 64;

/// At most three quarters of the slots are taken.
bool Fits(std::size_t rows, std::size_t slots) { return rows * 4 <= slots * 3; }

}  // namespace

std::uint64_t HashBytes(std::string_view bytes) {
  std::uint64_t hash = kOdd2 ^ bytes.size();
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  while (left > 8) {
    hash = Mix(hash ^ Word(at, 8), kOdd1);
    at += 8;
    left -= 8;
  }
  hash = Mix(hash ^ Word(at, left), kOdd1 + left);
  return Mix(hash, kOdd2);
}

/// Key bytes follow the head, then room for the value.
struct RowTable::Record {
  std::uint32_t key_size;
  std::uint32_t value_size;
  std::uint32_t value_room;
  /// Position in its bucket (timed tables).
  std::uint32_t place;

  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  std::string_view key() const { return {bytes(), key_size}; }
  std::string_view value() const { return {bytes() + key_size, value_size}; }
};

RowTable::~RowTable() { Clear(); }

std::int64_t RowTable::TimeOfRecord(const Record* record) const {
  return TimeOf(timing_ == Timing::kKey ? record->key() : record->value());
}

void RowTable::Ahead::Slots(std::size_t i) {
  const std::uint64_t hash = HashBytes(keys_[i]);
  hashes_[i % kSteps] = hash;
  if (!table_.slots_.empty()) {
    __builtin_prefetch(&table_.slots_[table_.Home(hash)]);
  }
}

void RowTable::Ahead::Records(std::size_t i) {
  if (!table_.slots_.empty()) {
    const Slot& slot = table_.slots_[table_.Home(hashes_[i % kSteps])];
    if (slot.record != nullptr) {
      __builtin_prefetch(slot.record);
    }
  }
}

void RowTable::Clear() {
  for (Slot& slot : slots_) {
    std::free(slot.record);
  }
  slots_.clear();
  buckets_.clear();
  last_bucket_ = nullptr;
  count_ = 0;
  payload_bytes_ = 0;
  record_bytes_ = 0;
}

std::size_t RowTable::SlotOf(std::uint64_t hash, std::string_view key) const {
  std::size_t at = Home(hash);
  while (slots_[at].record != nullptr && (slots_[at].hash != hash || slots_[at].record->key() != key)) {
    at = (at + 1) & (slots_.size() - 1);
  }
  return at;
}

std::string_view RowTable::Find(std::string_view key) const {
  if (count_ == 0) {
    return {};
  }
  const Slot& slot = slots_[SlotOf(HashBytes(key), key)];
  return slot.record == nullptr ? std::string_view() : slot.record->value();
}

void RowTable::Reserve(std::size_t rows) {
  std::size_t slots = std::max(kFirstSlots, slots_.size());
  while (!Fits(rows, slots)) {
    slots *= 2;
  }
  if (slots > slots_.size()) {
    Grow(slots);
  }
}

void RowTable::Grow(std::size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.record == nullptr) {
      continue;
    }
    std::size_t at = Home(slot.hash);
    while (slots_[at].record != nullptr) {
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = slot;
  }
}

void RowTable::Insert(std::size_t at, std::uint64_t hash, std::string_view key, std::string_view value) {
  const std::size_t room = (value.size() + 7) / 8 * 8;
  const std::size_t size = sizeof(Record) + key.size() + room;
  auto* record = static_cast<Record*>(std::malloc(size));
  if (record == nullptr) {
    throw std::bad_alloc();
  }
  record->key_size = static_cast<std::uint32_t>(key.size());
  record->value_size = static_cast<std::uint32_t>(value.size());
  record->value_room = static_cast<std::uint32_t>(room);
  record->place = 0;
  std::memcpy(record->bytes(), key.data(), key.size());
  std::memcpy(record->bytes() + key.size(), value.data(), value.size());
  slots_[at] = Slot{hash, record};
  ++count_;
  payload_bytes_ += static_cast<std::int64_t>(key.size() + value.size());
  record_bytes_ += static_cast<std::int64_t>(size);
  if (timed()) {
    Index(record);
  }
}

bool RowTable::Put(std::string_view key, std::string_view value) {
  // At most three quarters full.
  if (!Fits(count_ + 1, slots_.size())) {
    Grow(std::max(kFirstSlots, slots_.size() * 2));
  }
  const std::uint64_t hash = HashBytes(key);
  const std::size_t at = SlotOf(hash, key);
  Record* record = slots_[at].record;
  if (record == nullptr) {
    Insert(at, hash, key, value);
    return true;
  }
  const bool grows = value.size() > record->value_room;
  const bool moves = timing_ == Timing::kValue ? TimeOf(value) != TimeOfRecord(record) : false;
  if (timed() && (grows || moves)) {
    Unindex(record);
  }
  if (grows) {
    // Values that grow (lists, sets) get room to grow further.
    const std::size_t room = (value.size() + value.size() / 2 + 7) / 8 * 8;
    auto* larger = static_cast<Record*>(std::realloc(record, sizeof(Record) + key.size() + room));
    if (larger == nullptr) {
      throw std::bad_alloc();
    }
    record_bytes_ += static_cast<std::int64_t>(room) - larger->value_room;
    larger->value_room = static_cast<std::uint32_t>(room);
    slots_[at].record = record = larger;
  }
  payload_bytes_ += static_cast<std::int64_t>(value.size()) - record->value_size;
  std::memcpy(record->bytes() + record->key_size, value.data(), value.size());
  record->value_size = static_cast<std::uint32_t>(value.size());
  if (timed() && (grows || moves)) {
    Index(record);
  }
  return false;
}

bool RowTable::Add(std::string_view key, std::string_view value) {
  if (!Fits(count_ + 1, slots_.size())) {
    Grow(std::max(kFirstSlots, slots_.size() * 2));
  }
  const std::uint64_t hash = HashBytes(key);
  const std::size_t at = SlotOf(hash, key);
  if (slots_[at].record != nullptr) {
    return false;
  }
  Insert(at, hash, key, value);
  return true;
}

bool RowTable::Remove(std::string_view key) {
  if (count_ == 0) {
    return false;
  }
  std::size_t at = SlotOf(HashBytes(key), key);
  Record* record = slots_[at].record;
  if (record == nullptr) {
    return false;
  }
  if (timed()) {
    Unindex(record);
  }
  --count_;
  payload_bytes_ -= static_cast<std::int64_t>(record->key_size) + record->value_size;
  record_bytes_ -= static_cast<std::int64_t>(sizeof(Record)) + record->key_size + record->value_room;
  std::free(record);
  slots_[at].record = nullptr;
  // Rows behind that were pushed past this slot move up, so that no search ends early.
  std::size_t next = (at + 1) & (slots_.size() - 1);
  while (slots_[next].record != nullptr) {
    const std::size_t home = Home(slots_[next].hash);
    const bool stays = at < next ? home > at && home <= next : home > at || home <= next;
    if (!stays) {
      slots_[at] = slots_[next];
      slots_[next].record = nullptr;
      at = next;
    }
    next = (next + 1) & (slots_.size() - 1);
  }
  if (count_ == 0) {
    slots_.clear();
    slots_.shrink_to_fit();
  }
  return true;
}

void RowTable::Index(Record* record) {
  const std::int64_t time = BucketOf(TimeOfRecord(record));
  if (last_bucket_ == nullptr || last_bucket_time_ != time) {
    last_bucket_ = &buckets_[time];
    last_bucket_time_ = time;
  }
  std::vector<Record*>& bucket = *last_bucket_;
  record->place = static_cast<std::uint32_t>(bucket.size());
  bucket.push_back(record);
}

void RowTable::Unindex(Record* record) {
  const std::int64_t time = BucketOf(TimeOfRecord(record));
  if (last_bucket_ == nullptr || last_bucket_time_ != time) {
    last_bucket_ = &buckets_.find(time)->second;
    last_bucket_time_ = time;
  }
  std::vector<Record*>& bucket = *last_bucket_;
  bucket.back()->place = record->place;
  bucket[record->place] = bucket.back();
  bucket.pop_back();
  if (bucket.empty()) {
    buckets_.erase(time);
    last_bucket_ = nullptr;
  }
}

void RowTable::Scan(const Visit& visit) const {
  for (const Slot& slot : slots_) {
    if (slot.record != nullptr && !visit(slot.record->key(), slot.record->value())) {
      return;
    }
  }
}

void RowTable::Range(std::int64_t from, std::int64_t to, const Visit& visit) const {
  std::vector<std::pair<std::int64_t, const Record*>> sorted;
  for (auto at = buckets_.lower_bound(BucketOf(from)); at != buckets_.end() && at->first <= BucketOf(to); ++at) {
    sorted.clear();
    for (const Record* record : at->second) {
      const std::int64_t time = TimeOfRecord(record);
      if (time >= from && time <= to) {
        sorted.emplace_back(time, record);
      }
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [time, record] : sorted) {
      if (!visit(record->key(), record->value())) {
        return;
      }
    }
  }
}

std::int64_t RowTable::memory_bytes() const {
  // What the allocator adds to each record, and the index.
  constexpr std::int64_t kPerRecord = 16;
  constexpr std::int64_t kPerBucket = 96;
  return record_bytes_ + static_cast<std::int64_t>(count_) * kPerRecord +
         static_cast<std::int64_t>(slots_.size() * sizeof(Slot)) +
         (timed() ? static_cast<std::int64_t>(buckets_.size()) * kPerBucket +
                        static_cast<std::int64_t>(count_ * sizeof(Record*))
                  : 0);
}

}  // namespace fleuve::state
