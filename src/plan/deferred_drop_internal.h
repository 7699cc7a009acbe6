#pragma once

/// \file
/// Frees trees of shared nodes level by level instead of by recursion.

#include <memory>
#include <utility>
#include <vector>

namespace fleuve::plan {

/// Collects what the outermost destructor of a thread shall free. Used on the stack of a node's destructor.
class DeferredDrop {
 public:
  /// Takes over `pointer`: freed at once where nobody else is freeing, else when the outermost destructor gets to it.
  template <typename T>
  void Take(std::shared_ptr<T>& pointer) {
    if (pointer != nullptr) {
      target().pending_.emplace_back(std::move(pointer));
    }
  }

  DeferredDrop() {
    if (active_ == nullptr) {
      active_ = this;
    }
  }
  DeferredDrop(const DeferredDrop&) = delete;
  DeferredDrop& operator=(const DeferredDrop&) = delete;
  ~DeferredDrop() {
    if (active_ != this) {
      return;
    }
    while (!pending_.empty()) {
      std::shared_ptr<const void> next = std::move(pending_.back());
      pending_.pop_back();
      next.reset();
    }
    active_ = nullptr;
  }

 private:
  DeferredDrop& target() { return *active_; }

  static thread_local DeferredDrop* active_;
  std::vector<std::shared_ptr<const void>> pending_;
};

}  // namespace fleuve::plan
