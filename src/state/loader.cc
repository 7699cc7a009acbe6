#include <algorithm>
#include <future>
#include <system_error>

#include "state/loader_internal.h"

namespace fleuve::state {

namespace {

/// A thread for less than this many bytes costs more than it takes away.
constexpr std::size_t kFewestBytesForTwo = 256 << 10;

}  // namespace

Loader::Loader(const std::vector<std::unique_ptr<RowTable>>& tables, bool two_threads) : tables_(tables) {
  for (std::size_t i = 0; two_threads && i < tables.size(); ++i) {
    upper_.push_back(std::make_unique<RowTable>(tables[i]->timing()));
  }
}

void Loader::Reserve(const std::vector<std::int64_t>& space_rows) {
  for (const auto* tables : {&tables_, static_cast<const std::vector<std::unique_ptr<RowTable>>*>(&upper_)}) {
    for (std::size_t i = 0; i < std::min(tables->size(), space_rows.size()); ++i) {
      (*tables)[i]->Reserve(static_cast<std::size_t>(space_rows[i]));
    }
  }
}

Result<void> Loader::Add(const ParsedFile& file, const std::string& path) {
  if (upper_.empty() || file.records.size() < kFewestBytesForTwo) {
    return Half{*this, false, 0}.Add(file, path);
  }
  std::future<Result<void>> upper;
  try {
    upper = std::async(std::launch::async, [&] { return Half{*this, true, 1}.Add(file, path); });
  } catch (const std::system_error&) {
    // No thread can be had.
    return Half{*this, false, 0}.Add(file, path);
  }
  auto lower = Half{*this, true, 0}.Add(file, path);
  auto other = upper.get();
  return lower.ok() ? std::move(other) : std::move(lower);
}

Result<void> Loader::Half::Add(const ParsedFile& file, const std::string& path) const {
  // Rows are asked for some steps before they are put: they are far apart in memory.
  constexpr std::size_t kSteps = RowTable::kSegmentSteps;
  struct Pending {
    Record record;
    std::uint64_t hash = 0;
    RowTable* table = nullptr;
  };
  Pending pending[kSteps];
  RecordReader reader(file.records, loader.tables_.size(), path);
  bool more = true;
  std::size_t read = 0;
  for (std::size_t done = 0;; ++done) {
    while (more && read < done + kSteps) {
      Pending& next = pending[read % kSteps];
      FLEUVE_ASSIGN(more, reader.Next(&next.record));
      if (!more) {
        break;
      }
      next.hash = HashKey(next.record.key);
      if (only_one && next.hash >> 63 != which) {
        continue;
      }
      next.table = &loader.TableOf(next.record.space, next.hash);
      __builtin_prefetch(next.table->SegmentNear(next.hash));
      ++read;
    }
    if (done == read) {
      return {};
    }
    if (done + RowTable::kSlotSteps < read) {
      const Pending& ahead = pending[(done + RowTable::kSlotSteps) % kSteps];
      __builtin_prefetch(ahead.table->SlotNear(ahead.hash));
    }
    if (done + RowTable::kRowSteps < read) {
      const Pending& ahead = pending[(done + RowTable::kRowSteps) % kSteps];
      __builtin_prefetch(ahead.table->RowNear(ahead.hash));
    }
    const Pending& now = pending[done % kSteps];
    if (now.record.is_removal) {
      now.table->Remove(now.hash, now.record.key);
    } else {
      now.table->Put(now.hash, now.record.key, now.record.value);
    }
  }
}

void Loader::Finish() {
  for (std::size_t i = 0; i < upper_.size(); ++i) {
    tables_[i]->TakeUpperHalf(*upper_[i]);
  }
  upper_.clear();
}

std::int64_t Loader::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& table : upper_) {
    bytes += table->memory_bytes();
  }
  return bytes;
}

}  // namespace fleuve::state
