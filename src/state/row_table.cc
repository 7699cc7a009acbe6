#include <algorithm>
#include <memory>
#include <utility>

#include "state/row_table_internal.h"
#include "state/store.h"

namespace fleuve::state {

namespace {

/// Beyond this many bits of equal hashes a segment grows instead.
constexpr int kMostDepth = 32;
/// Places of the directory per segment at which it is not widened any more.
constexpr std::size_t kMostSpread = 16;
/// Rows of a segment, in memory and where segments come and go.
constexpr std::size_t kMostRows = 768;
constexpr std::size_t kMostRowsPaged = 192;
constexpr std::size_t kMostBytes = 256 << 10;
constexpr std::size_t kMostBytesPaged = 16 << 10;
/// A bucket with fewer entries than this without a row is left as it is.
constexpr std::size_t kFewestStale = 64;

}  // namespace

RowTable::RowTable(Timing timing, Pager* pager)
    : timing_(timing),
      pager_(pager),
      most_rows_(pager == nullptr ? kMostRows : kMostRowsPaged),
      most_bytes_(pager == nullptr ? kMostBytes : kMostBytesPaged) {
  Reset(0);
  if (pager_ != nullptr) {
    pager_->Attach(this);
  }
}
RowTable::~RowTable() { DropSegments(); }

template <typename VisitSegment>
bool RowTable::EachSegment(const VisitSegment& visit) const {
  for (std::size_t i = 0; i < directory_.size(); i += directory_.size() >> directory_[i]->depth()) {
    if (!visit(*directory_[i])) {
      return false;
    }
  }
  return true;
}

void RowTable::DropSegments() {
  for (std::size_t i = 0; i < directory_.size();) {
    Segment* segment = directory_[i];
    i += directory_.size() >> segment->depth();
    if (pager_ != nullptr) {
      segment->Drop(*pager_);
    }
    delete segment;
  }
  directory_.clear();
  resident_.clear();
}

void RowTable::Reset(int depth) {
  DropSegments();
  depth_ = depth;
  const std::size_t places = std::size_t{1} << depth;
  directory_.reserve(places);
  for (std::size_t i = 0; i < places; ++i) {
    directory_.push_back(std::make_unique<Segment>(depth).release());
  }
  segment_count_ = places;
  segment_bytes_ = static_cast<std::int64_t>(places * directory_[0]->memory_bytes());
}

void RowTable::Clear() {
  Reset(0);
  buckets_.clear();
  known_buckets_ = {};
  row_count_ = 0;
  payload_bytes_ = 0;
}

void RowTable::Reserve(std::size_t rows) {
  if (row_count_ > 0) {
    return;
  }
  int depth = 0;
  while (rows >> depth > most_rows_ * 3 / 4 && depth < kMostDepth) {
    ++depth;
  }
  Reset(depth);
}

void RowTable::TakeUpperHalf(RowTable& upper) {
  for (RowTable* table : {this, &upper}) {
    if (table->depth_ == 0) {
      table->Split(0);
    }
  }
  const int depth = std::max(depth_, upper.depth_);
  const std::size_t places = std::size_t{1} << depth;
  std::vector<Segment*> both;
  both.reserve(places);
  for (std::size_t i = 0; i < places; ++i) {
    const RowTable& from = i < places / 2 ? *this : upper;
    both.push_back(from.directory_[i >> (depth - from.depth_)]);
  }
  // The other half of each has no rows.
  segment_count_ += upper.segment_count_;
  segment_bytes_ += upper.segment_bytes_;
  const auto drop = [this](const std::vector<Segment*>& directory, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to;) {
      const Segment* segment = directory[i];
      i += directory.size() >> segment->depth();
      --segment_count_;
      segment_bytes_ -= static_cast<std::int64_t>(segment->memory_bytes());
      delete segment;
    }
  };
  drop(directory_, directory_.size() / 2, directory_.size());
  drop(upper.directory_, 0, upper.directory_.size() / 2);
  directory_ = std::move(both);
  depth_ = depth;
  row_count_ += upper.row_count_;
  payload_bytes_ += upper.payload_bytes_;
  known_buckets_ = {};
  buckets_.merge(upper.buckets_);
  for (const auto& [number, more] : upper.buckets_) {
    Bucket& bucket = buckets_[number];
    bucket.entries.insert(bucket.entries.end(), more.entries.begin(), more.entries.end());
    bucket.is_sorted = false;
    bucket.first_time = std::min(bucket.first_time, more.first_time);
    bucket.live += more.live;
  }
  upper.directory_.clear();
  upper.Clear();
}

void RowTable::Split(std::size_t place) {
  Segment& full = *directory_[place];
  if (pager_ != nullptr) {
    Use(full);
  }
  const int depth = full.depth() + 1;
  if (depth > depth_) {
    std::vector<Segment*> wider(directory_.size() * 2);
    for (std::size_t i = 0; i < directory_.size(); ++i) {
      wider[2 * i] = wider[2 * i + 1] = directory_[i];
    }
    directory_ = std::move(wider);
    ++depth_;
    place *= 2;
  }
  auto low = std::make_unique<Segment>(depth);
  auto high = std::make_unique<Segment>(depth);
  // About half of the rows go into each, with room for some more.
  const std::size_t rows = full.rows() / 2 + full.rows() / 8;
  const std::size_t bytes = full.used_bytes() / 2 + full.used_bytes() / 8;
  low->Reserve(rows, bytes);
  high->Reserve(rows, bytes);
  full.Each([&](std::string_view key, std::string_view value) {
    const std::uint64_t hash = HashKey(key);
    ((hash >> (64 - depth) & 1) == 0 ? low : high)->Insert(hash, key, value);
    return true;
  });
  segment_bytes_ += static_cast<std::int64_t>(low->memory_bytes() + high->memory_bytes()) -
                    static_cast<std::int64_t>(full.memory_bytes());
  ++segment_count_;
  const std::size_t width = directory_.size() >> full.depth();
  const std::size_t first = place / width * width;
  for (std::size_t i = 0; i < width; ++i) {
    directory_[first + i] = i < width / 2 ? low.get() : high.get();
  }
  Segment& first_half = *low.release();
  Segment& second_half = *high.release();
  if (pager_ != nullptr) {
    full.Drop(*pager_);
    Leave(full);
  }
  delete &full;
  if (pager_ != nullptr) {
    Enter(first_half);
    Enter(second_half);
  }
}

bool RowTable::MaySplit(const Segment& segment) const {
  // Few large rows with hashes alike would widen the directory for nothing.
  return segment.depth() < depth_ || (depth_ < kMostDepth && directory_.size() <= segment_count_ * kMostSpread);
}

Segment& RowTable::WithRoom(std::uint64_t hash) {
  while (SegmentOf(hash).IsFull(most_rows_, most_bytes_) && MaySplit(SegmentOf(hash))) {
    Split(Place(hash));
  }
  return SegmentOf(hash);
}

bool RowTable::Put(std::uint64_t hash, std::string_view key, std::string_view value) {
  const std::string_view old = SegmentOf(hash).Find(hash, key);
  const bool is_new = old.data() == nullptr;
  const std::size_t old_size = old.size();
  const std::int64_t old_time = timed() && !is_new ? TimeIn(key, old) : 0;
  Segment& segment = is_new ? WithRoom(hash) : SegmentOf(hash);
  const std::size_t before = segment.memory_bytes();
  if (is_new) {
    segment.Insert(hash, key, value);
    ++row_count_;
    payload_bytes_ += static_cast<std::int64_t>(key.size());
  } else {
    segment.Replace(hash, key, value);
  }
  payload_bytes_ += static_cast<std::int64_t>(value.size()) - static_cast<std::int64_t>(old_size);
  segment_bytes_ += static_cast<std::int64_t>(segment.memory_bytes()) - static_cast<std::int64_t>(before);
  if (timed()) {
    const std::int64_t time = TimeIn(key, value);
    if (is_new || time != old_time) {
      if (!is_new) {
        Unindex(old_time);
      }
      Index(hash, time);
    }
  }
  Settle();
  return is_new;
}

bool RowTable::Add(std::uint64_t hash, std::string_view key, std::string_view value) {
  if (Find(hash, key).data() != nullptr) {
    Settle();
    return false;
  }
  return Put(hash, key, value);
}

bool RowTable::Remove(std::uint64_t hash, std::string_view key) {
  Segment& segment = SegmentOf(hash);
  const std::string_view old = segment.Find(hash, key);
  if (old.data() == nullptr) {
    Settle();
    return false;
  }
  if (timed()) {
    Unindex(TimeIn(key, old));
  }
  payload_bytes_ -= static_cast<std::int64_t>(key.size() + old.size());
  const std::size_t before = segment.memory_bytes();
  segment.Remove(hash, key);
  segment_bytes_ += static_cast<std::int64_t>(segment.memory_bytes()) - static_cast<std::int64_t>(before);
  if (--row_count_ == 0) {
    Clear();
  }
  Settle();
  return true;
}

template <typename VisitRow>
bool RowTable::EachRow(Segment& segment, const VisitRow& visit) const {
  const bool comes = pager_ != nullptr && !segment.is_resident();
  if (comes) {
    Load(segment);
  }
  const bool all = segment.Each(visit);
  // Who looks at everything once does not drive out what is used.
  return (!comes || Spill(segment)) && all;
}

void RowTable::Load(Segment& segment) const {
  const std::size_t before = segment.memory_bytes();
  segment.Load(*pager_);
  segment_bytes_ += static_cast<std::int64_t>(segment.memory_bytes() - before);
}

void RowTable::Enter(Segment& segment) const {
  if (!segment.is_resident()) {
    Load(segment);
  }
  segment.place_among_resident = static_cast<std::int32_t>(resident_.size());
  resident_.push_back(&segment);
}

void RowTable::Leave(Segment& segment) const {
  Segment* last = resident_.back();
  last->place_among_resident = segment.place_among_resident;
  resident_[static_cast<std::size_t>(segment.place_among_resident)] = last;
  resident_.pop_back();
  segment.place_among_resident = -1;
}

bool RowTable::Spill(Segment& segment) const {
  const std::size_t before = segment.memory_bytes();
  const bool spilled = segment.Spill(*pager_);
  segment_bytes_ -= static_cast<std::int64_t>(before) - static_cast<std::int64_t>(segment.memory_bytes());
  return spilled;
}

std::int64_t RowTable::SpillSome(std::int64_t bytes) {
  std::int64_t freed = 0;
  for (std::size_t left = resident_.size(); left > 0 && freed < bytes; --left) {
    hand_ = hand_ < resident_.size() ? hand_ : 0;
    Segment& segment = *resident_[hand_];
    if (std::exchange(segment.used_of_late, false)) {
      ++hand_;
      continue;
    }
    const auto before = static_cast<std::int64_t>(segment.memory_bytes());
    if (!Spill(segment)) {
      return freed;
    }
    freed += before - static_cast<std::int64_t>(segment.memory_bytes());
    Leave(segment);
  }
  return freed;
}

void RowTable::Scan(const Visit& visit) const {
  EachSegment([&](Segment& segment) { return EachRow(segment, visit); });
}

bool RowTable::ScanSome(std::uint64_t* position, std::int64_t bytes,
                        const std::function<void(std::string_view, std::string_view)>& visit) const {
  while (bytes > 0) {
    Segment& segment = *directory_[Place(*position)];
    EachRow(segment, [&](std::string_view key, std::string_view value) {
      bytes -= static_cast<std::int64_t>(key.size() + value.size());
      visit(key, value);
      return true;
    });
    // Not for nothing either: many empty segments are some work, too.
    bytes -= 256;
    if (segment.depth() == 0) {
      return false;
    }
    const std::uint64_t width = std::uint64_t{1} << (64 - segment.depth());
    *position = (*position & ~(width - 1)) + width;
    if (*position == 0) {
      return false;
    }
  }
  return true;
}

// ---- times ----

std::int64_t RowTable::TimeIn(std::string_view key, std::string_view value) const {
  return TimeOf(timing_ == Timing::kKey ? key : value);
}

RowTable::Bucket& RowTable::BucketAt(std::int64_t number) {
  KnownBucket& known = KnownPlace(number);
  if (known.bucket == nullptr || known.number != number) {
    known = KnownBucket{number, &buckets_[number]};
  }
  return *known.bucket;
}

void RowTable::Index(std::uint64_t hash, std::int64_t time) {
  const std::int64_t number = BucketOf(time);
  Bucket& bucket = BucketAt(number);
  ++bucket.live;
  std::vector<std::uint64_t>& entries = bucket.entries;
  if (entries.size() == entries.capacity() && !entries.empty()) {
    if (entries.size() > static_cast<std::size_t>(bucket.live) * 2 + kFewestStale) {
      Tidy(number, bucket);
    }
    // Less room to spare than a vector takes by itself: there is one entry per row.
    entries.reserve(entries.size() + entries.size() / 4 + 4);
  }
  bucket.is_sorted = false;
  bucket.first_time = std::min(bucket.first_time, time);
  entries.push_back(static_cast<std::uint64_t>(time) << kHashBits | hash >> kBucketShift);
}

void RowTable::Unindex(std::int64_t time) {
  const std::int64_t number = BucketOf(time);
  if (--BucketAt(number).live == 0) {
    buckets_.erase(number);
    KnownPlace(number) = {};
  }
}

void RowTable::SortEntries(Bucket& bucket) {
  if (std::exchange(bucket.is_sorted, true)) {
    return;
  }
  std::sort(bucket.entries.begin(), bucket.entries.end());
  bucket.entries.erase(std::unique(bucket.entries.begin(), bucket.entries.end()), bucket.entries.end());
}

void RowTable::Tidy(std::int64_t number, Bucket& bucket) const {
  SortEntries(bucket);
  std::erase_if(bucket.entries, [&](std::uint64_t entry) {
    const bool stale = EachOf(number, entry, [](std::string_view, std::string_view) { return false; });
    Settle();
    return stale;
  });
}

template <typename VisitRow>
bool RowTable::EachOf(std::int64_t number, std::uint64_t entry, const VisitRow& visit) const {
  constexpr std::uint64_t kHashPart = (std::uint64_t{1} << kHashBits) - 1;
  const std::int64_t time = number * (std::int64_t{1} << kBucketShift) + static_cast<std::int64_t>(entry >> kHashBits);
  const std::uint64_t hash = (entry & kHashPart) << kBucketShift;
  return SegmentOf(hash).EachLike(entry & kHashPart, [&](std::string_view key, std::string_view value) {
    if (TimeIn(key, value) != time || HashKey(key) >> kBucketShift != (entry & kHashPart)) {
      return true;
    }
    return static_cast<bool>(visit(key, value));
  });
}

void RowTable::Range(std::int64_t from, std::int64_t to, const Visit& visit) const {
  for (auto at = buckets_.lower_bound(BucketOf(from)); at != buckets_.end() && at->first <= BucketOf(to); ++at) {
    if (at->second.first_time > to) {
      continue;
    }
    SortEntries(at->second);
    const std::int64_t first = at->first * (std::int64_t{1} << kBucketShift);
    const std::vector<std::uint64_t>& entries = at->second.entries;
    const auto hash_at = [&entries](std::size_t i) { return entries[i] << kBucketShift; };
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i + kSegmentSteps < entries.size()) {
        __builtin_prefetch(SegmentNear(hash_at(i + kSegmentSteps)));
      }
      if (i + kSlotSteps < entries.size()) {
        __builtin_prefetch(SlotNear(hash_at(i + kSlotSteps)));
      }
      if (i + kRowSteps < entries.size()) {
        __builtin_prefetch(RowNear(hash_at(i + kRowSteps)));
      }
      const std::uint64_t entry = entries[i];
      const std::int64_t time = first + static_cast<std::int64_t>(entry >> kHashBits);
      if (time >= from && time <= to && !EachOf(at->first, entry, visit)) {
        return;
      }
      Settle();
    }
  }
}

std::int64_t RowTable::memory_bytes() const {
  constexpr std::int64_t kPerBucket = 96;
  // Entries have a little room to grow.
  const auto entries = timed() ? row_count_ * static_cast<std::int64_t>(sizeof(std::uint64_t)) * 9 / 8 : 0;
  return segment_bytes_ + static_cast<std::int64_t>(directory_.size() * sizeof(Segment*)) + entries +
         static_cast<std::int64_t>(buckets_.size()) * kPerBucket;
}

}  // namespace fleuve::state
