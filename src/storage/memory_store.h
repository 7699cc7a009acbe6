#pragma once

/// \file
/// A store in memory that can lose what was not synced, and a wrapper that fails on purpose. For tests.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "storage/object_store.h"

namespace fleuve::storage {

/// Objects in memory. It remembers which bytes and names were synced: `PowerCut` drops all others, as a disk may.
class MemoryStore : public ObjectStore {
 public:
  static std::shared_ptr<MemoryStore> Make();
  /// Drops every object, and every name in a folder, that no `Sync` covered since it was written.
  virtual void PowerCut() = 0;
};

/// What a fault does to one call.
enum class Fault {
  kNone,
  kFailBefore,   ///< the call is not carried out: kTransient
  kFailAfter,    ///< carried out, the answer is lost: kOutcomeUnknown
  kFailUnknown,  ///< not carried out, but the caller cannot know: kOutcomeUnknown
};

/// Wraps a store; before each call `decide(operation, path)` says what happens to it. Operations are the method names.
std::shared_ptr<ObjectStore> MakeFaultyStore(
    std::shared_ptr<ObjectStore> inner, std::function<Fault(std::string_view operation, std::string_view path)> decide);

}  // namespace fleuve::storage
