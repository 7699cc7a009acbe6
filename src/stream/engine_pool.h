#pragma once

/// \file
/// Engines that streaming queries borrow for the length of one batch.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace fleuve::stream {

/// A query needs an engine only while a batch runs; a hundred waiting queries must not hold a hundred instances (3 MB
/// each). Keeps as many idle engines as were ever borrowed at once, up to a limit. Threads: any.
class EnginePool : public std::enable_shared_from_this<EnginePool> {
 public:
  using Maker = std::function<Result<std::shared_ptr<engine::Engine>>()>;

  /// \param keep  idle engines kept at most, 1 or more.
  static std::shared_ptr<EnginePool> Make(Maker maker, std::size_t keep);

  /// The engine used last, or a new one; it comes back when the pointer goes, also after the pool's own end.
  /// \param memory_bytes  what its operators may use before they spill; 0 leaves it as it is.
  Result<std::shared_ptr<engine::Engine>> Borrow(std::int64_t memory_bytes);

 private:
  struct Entry {
    std::shared_ptr<engine::Engine> engine;
    std::int64_t memory_bytes = 0;
  };

  EnginePool(Maker maker, std::size_t keep) : maker_(std::move(maker)), keep_(keep) {}
  Result<Entry> Take();
  void GiveBack(Entry entry);

  const Maker maker_;
  const std::size_t keep_;
  std::mutex mutex_;
  std::vector<Entry> idle_;
};

}  // namespace fleuve::stream
