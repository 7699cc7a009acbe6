#include <algorithm>
#include <cstring>

#include "operators/join_side_internal.h"
#include "state/byte_codec.h"

namespace fleuve::operators {

namespace {

/// A chunk with this many rows or bytes takes no more.
constexpr std::uint32_t kChunkRows = 8;
constexpr std::size_t kChunkBytes = 1024;
/// Times of new rows that are put together.
constexpr std::size_t kMostNewTimes = 4096;

/// In front of a key's own entry: the numbers of its first and last further chunk; first > last: there are none.
struct Head {
  std::uint32_t first = 1;
  std::uint32_t last = 0;
  bool has_chunks() const { return first <= last; }
};
/// In front of each row.
struct RowHead {
  std::int64_t time = 0;
  std::uint32_t size = 0;
  std::uint32_t matched = 0;
};

template <typename T>
T Read(std::string_view text, std::size_t at) {
  T value;
  std::memcpy(&value, text.data() + at, sizeof(T));
  return value;
}

std::size_t HeadBytes(std::uint32_t chunk) { return chunk == 0 ? sizeof(Head) : 0; }

/// The name of a chunk in the store.
std::string ChunkKey(std::string_view key, std::uint32_t chunk) {
  std::string out(1, chunk == 0 ? '\0' : '\1');
  if (chunk != 0) {
    state::AppendRaw(out, chunk);
  }
  out += key;
  return out;
}

Error Damaged() {
  return state::CannotLoad(ErrorKind::kCorrupt, "UNCATEGORIZED", "The rows of a key of a join are cut off.");
}

/// Calls `visit(row, offset of its head)` for each row of a chunk; false where it is cut off.
template <typename VisitRow>
Result<void> EachIn(std::string_view value, std::uint32_t chunk, const VisitRow& visit) {
  std::size_t at = HeadBytes(chunk);
  for (std::uint32_t place = 0; at < value.size(); ++place) {
    if (value.size() - at < sizeof(RowHead)) {
      return Damaged();
    }
    const auto head = Read<RowHead>(value, at);
    const std::size_t from = at;
    at += sizeof(RowHead);
    if (value.size() - at < head.size) {
      return Damaged();
    }
    JoinSide::Row row;
    row.bytes = value.substr(at, head.size);
    row.time = head.time;
    row.matched = head.matched != 0;
    row.chunk = chunk;
    row.place = place;
    FLEUVE_TRY(visit(row, from));
    at += head.size;
  }
  return {};
}

bool IsFull(std::string_view value, std::uint32_t chunk) {
  if (value.size() >= kChunkBytes) {
    return true;
  }
  std::uint32_t rows = 0;
  const auto counted = EachIn(value, chunk, [&rows](const JoinSide::Row&, std::size_t) -> Result<void> {
    ++rows;
    return {};
  });
  return !counted.ok() || rows >= kChunkRows;
}

}  // namespace

JoinSide::JoinSide(state::Store& store, state::SpaceId first_space) : store_(store), rows_(first_space) {
  const std::string_view totals = store_.Get(this->totals(), "");
  if (totals.size() == 2 * sizeof(std::int64_t)) {
    key_count_ = Read<std::int64_t>(totals, 0);
    row_count_ = Read<std::int64_t>(totals, sizeof(std::int64_t));
  }
}

std::int64_t JoinSide::RowCount(const state::Store& store, state::SpaceId first_space) {
  const std::string_view totals = store.Get(first_space + 2, "");
  return totals.size() != 2 * sizeof(std::int64_t) ? 0 : Read<std::int64_t>(totals, sizeof(std::int64_t));
}

void JoinSide::Finish() {
  PutTimes();
  std::string totals;
  state::AppendRaw(totals, key_count_);
  state::AppendRaw(totals, row_count_);
  if (store_.Get(this->totals(), "") != totals) {
    store_.Put(this->totals(), "", totals);
  }
}

void JoinSide::Near(const state::ByteRows& keys, std::size_t first, std::size_t count) {
  near_keys_.Clear();
  for (std::size_t i = first; i < first + count; ++i) {
    near_keys_.bytes().push_back('\0');
    near_keys_.Add(keys[i]);
  }
  store_.GetMany(rows_, near_keys_, &near_values_);
}

Result<void> JoinSide::Each(std::string_view key, std::size_t near, const Visit& visit) const {
  const std::string_view value = near < near_values_.size() ? near_values_[near] : store_.Get(rows_, ChunkKey(key, 0));
  if (value.data() == nullptr) {
    return {};
  }
  if (value.size() < sizeof(Head)) {
    return Damaged();
  }
  const auto head = Read<Head>(value, 0);
  FLEUVE_TRY(EachIn(value, 0, [&visit](const Row& row, std::size_t) { return visit(row); }));
  for (std::uint32_t chunk = head.first; chunk <= head.last; ++chunk) {
    // A chunk whose rows all went is not there.
    FLEUVE_TRY(EachIn(store_.Get(rows_, ChunkKey(key, chunk)), chunk,
                      [&visit](const Row& row, std::size_t) { return visit(row); }));
  }
  return {};
}

void JoinSide::PutTimes() {
  no_values_.Clear();
  for (std::size_t i = 0; i < new_times_.size(); ++i) {
    no_values_.EndRow();
  }
  store_.PutMany(times(), new_times_, no_values_);
  new_times_.Clear();
}

Result<void> JoinSide::Add(std::string_view key, std::string_view bytes, std::int64_t time, bool matched) {
  near_values_.clear();
  const std::string head_key = ChunkKey(key, 0);
  const std::string_view known = store_.Get(rows_, head_key);
  Head head;
  std::uint32_t chunk = 0;
  value_.clear();
  if (known.data() == nullptr) {
    state::AppendRaw(value_, head);
    ++key_count_;
  } else {
    if (known.size() < sizeof(Head)) {
      return Damaged();
    }
    head = Read<Head>(known, 0);
    value_ = known;
    if (head.has_chunks() || IsFull(known, 0)) {
      std::string_view last;
      if (head.has_chunks()) {
        chunk = head.last;
        last = store_.Get(rows_, ChunkKey(key, chunk));
      }
      if (!head.has_chunks() || IsFull(last, chunk)) {
        chunk = ++head.last;
        std::memcpy(value_.data(), &head, sizeof(head));
        store_.Put(rows_, head_key, value_);
        value_.clear();
      } else {
        value_ = last;
      }
    }
  }
  state::AppendRaw(value_, RowHead{time, static_cast<std::uint32_t>(bytes.size()), matched ? 1U : 0U});
  value_ += bytes;
  const std::string chunk_key = chunk == 0 ? head_key : ChunkKey(key, chunk);
  store_.Put(rows_, chunk_key, value_);
  ++row_count_;
  if (time != kNoTime) {
    state::AppendTime(new_times_.bytes(), time);
    new_times_.Add(chunk_key);
    if (new_times_.size() >= kMostNewTimes) {
      PutTimes();
    }
  }
  return {};
}

Result<void> JoinSide::SetMatched(std::string_view key, std::uint32_t chunk, std::uint32_t place) {
  near_values_.clear();
  const std::string chunk_key = ChunkKey(key, chunk);
  value_ = store_.Get(rows_, chunk_key);
  bool changed = false;
  FLEUVE_TRY(EachIn(value_, chunk, [&](const Row& row, std::size_t at) -> Result<void> {
    if (row.place == place && !row.matched) {
      const std::uint32_t yes = 1;
      std::memcpy(value_.data() + at + offsetof(RowHead, matched), &yes, sizeof(yes));
      changed = true;
    }
    return {};
  }));
  if (changed) {
    store_.Put(rows_, chunk_key, value_);
  }
  return {};
}

Result<void> JoinSide::ExpireChunk(std::string_view key, std::uint32_t chunk, std::int64_t limit, const Visit& gone,
                                   std::int64_t* count) {
  const std::string chunk_key = ChunkKey(key, chunk);
  const std::string_view value = store_.Get(rows_, chunk_key);
  if (value.size() < HeadBytes(chunk)) {
    return Result<void>();  // an entry of the same chunk came before
  }
  value_.assign(value.substr(0, HeadBytes(chunk)));
  std::int64_t expired = 0;
  FLEUVE_TRY(EachIn(value, chunk, [&](const Row& row, std::size_t at) -> Result<void> {
    if (row.time != kNoTime && row.time <= limit) {
      ++expired;
      return gone(row);
    }
    value_ += value.substr(at, sizeof(RowHead) + row.bytes.size());
    return {};
  }));
  if (expired == 0) {
    return {};
  }
  *count += expired;
  row_count_ -= expired;
  if (value_.size() > HeadBytes(chunk)) {
    store_.Put(rows_, chunk_key, value_);
    return {};
  }
  // Nothing is left in the chunk: the head forgets chunks at either end, and goes itself when there are none.
  const std::string head_key = ChunkKey(key, 0);
  if (chunk != 0) {
    store_.Remove(rows_, chunk_key);
    value_ = store_.Get(rows_, head_key);
  }
  if (value_.size() < sizeof(Head)) {
    return Damaged();
  }
  auto head = Read<Head>(value_, 0);
  const auto is_gone = [&](std::uint32_t number) { return store_.Get(rows_, ChunkKey(key, number)).data() == nullptr; };
  while (head.has_chunks() && is_gone(head.first)) {
    ++head.first;
  }
  while (head.has_chunks() && is_gone(head.last)) {
    --head.last;
  }
  if (!head.has_chunks()) {
    head = Head();
    if (value_.size() == sizeof(Head)) {
      store_.Remove(rows_, head_key);
      --key_count_;
      return {};
    }
  }
  std::memcpy(value_.data(), &head, sizeof(head));
  store_.Put(rows_, head_key, value_);
  return {};
}

Result<std::int64_t> JoinSide::Expire(std::int64_t limit, const Visit& gone) {
  PutTimes();
  state::ByteRows entries;
  store_.Range(times(), INT64_MIN, limit, [&entries](std::string_view entry, std::string_view) {
    entries.Add(entry);
    return true;
  });
  std::int64_t count = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i % kNearRows == 0) {
      near_keys_.Clear();
      for (std::size_t j = i; j < std::min(entries.size(), i + kNearRows); ++j) {
        near_keys_.Add(entries[j].substr(sizeof(std::int64_t)));
      }
      store_.GetMany(rows_, near_keys_, &near_values_);
    }
    std::string_view name = entries[i].substr(sizeof(std::int64_t));
    std::uint32_t chunk = 0;
    if (name[0] != '\0') {
      chunk = Read<std::uint32_t>(name, 1);
      name.remove_prefix(sizeof(chunk));
    }
    FLEUVE_TRY(ExpireChunk(name.substr(1), chunk, limit, gone, &count));
  }
  near_values_.clear();
  store_.RemoveMany(times(), entries);
  return count;
}

}  // namespace fleuve::operators
