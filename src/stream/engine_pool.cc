#include "stream/engine_pool.h"

#include <utility>

namespace fleuve::stream {

std::shared_ptr<EnginePool> EnginePool::Make(Maker maker, std::size_t keep) {
  return std::shared_ptr<EnginePool>(new EnginePool(std::move(maker), keep));
}

Result<EnginePool::Entry> EnginePool::Take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Entry entry = std::move(idle_.back());
      idle_.pop_back();
      return entry;
    }
  }
  Entry entry;
  FLEUVE_ASSIGN(entry.engine, maker_());
  return entry;
}

void EnginePool::GiveBack(Entry entry) {
  std::lock_guard lock(mutex_);
  if (idle_.size() < keep_) {
    idle_.push_back(std::move(entry));
  }
}

Result<std::shared_ptr<engine::Engine>> EnginePool::Borrow(std::int64_t memory_bytes) {
  FLEUVE_ASSIGN(Entry entry, Take());
  if (entry.engine == nullptr) {
    return entry.engine;
  }
  // Setting it costs as much as a small query, so a little too much is let be.
  const std::int64_t now = entry.memory_bytes;
  if (memory_bytes > 0 && (memory_bytes < now || memory_bytes > now + now / 4)) {
    FLEUVE_TRY(entry.engine->SetMemory(memory_bytes));
    entry.memory_bytes = memory_bytes;
  }
  engine::Engine* engine = entry.engine.get();
  const auto give_back = [pool = shared_from_this(), entry](engine::Engine*) mutable {
    pool->GiveBack(std::exchange(entry, Entry()));
  };
  return std::shared_ptr<engine::Engine>(engine, give_back);
}

}  // namespace fleuve::stream
