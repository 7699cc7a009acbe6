#pragma once

/// \file
/// What a snapshot is made of, and how the next one is made from it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "delta/file_set_internal.h"
#include "delta/snapshot.h"

namespace fleuve::delta {

/// Metadata with its schema parsed.
struct TableShape {
  Metadata metadata;
  types::Schema schema;
  types::Schema partition_schema;
};

/// DELTA_CORRUPT_LOG where the schema cannot be read.
Result<std::shared_ptr<const TableShape>> MakeShape(Metadata metadata);

/// Values by name that change one at a time: a shared base and a small part on top.
template <typename T>
class LayeredMap {
 public:
  const T* Find(std::string_view key) const {
    if (const auto at = top_.find(key); at != top_.end()) {
      return &at->second;
    }
    if (base_) {
      if (const auto at = base_->find(key); at != base_->end()) {
        return &at->second;
      }
    }
    return nullptr;
  }
  void Set(const std::string& key, T value) {
    top_[key] = std::move(value);
    if (top_.size() > 64) {
      auto merged = base_ ? std::make_shared<Map>(*base_) : std::make_shared<Map>();
      for (auto& [k, v] : top_) {
        (*merged)[k] = std::move(v);
      }
      base_ = std::move(merged);
      top_.clear();
    }
  }
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [k, v] : top_) {
      visit(v);
    }
    if (base_) {
      for (const auto& [k, v] : *base_) {
        if (!top_.contains(k)) {
          visit(v);
        }
      }
    }
  }

 private:
  using Map = std::map<std::string, T, std::less<>>;
  std::shared_ptr<const Map> base_;
  Map top_;
};

/// Removed files by chunks, newest last; chunks are joined as they grow.
using TombstoneChunks = std::vector<std::shared_ptr<const std::vector<RemoveFile>>>;

struct SnapshotState {
  storage::Location location;
  std::int64_t version = -1;
  std::int64_t timestamp_ms = 0;
  std::shared_ptr<const TableShape> shape;
  std::shared_ptr<const Protocol> protocol;
  std::shared_ptr<const FileSet> files = FileSet::Empty();
  LayeredMap<SetTransaction> transactions;
  LayeredMap<DomainMetadata> domains;
  TombstoneChunks tombstones;
};

/// The state after one commit. Metadata is parsed and the protocol checked where they changed.
Result<std::shared_ptr<SnapshotState>> ApplyCommit(const SnapshotState& before, std::int64_t version,
                                                   std::int64_t timestamp_ms, const std::vector<Action>& actions);

/// Milliseconds of an interval property such as `interval 7 days`; nullopt where it cannot be read.
std::optional<std::int64_t> ParseIntervalMs(std::string_view text);

}  // namespace fleuve::delta
