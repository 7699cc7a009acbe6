#pragma once

/// \file
/// Two tokens of which cancelling one cancels the other, for a while.

#include <utility>

#include "base/cancellation.h"

namespace fleuve::connectors {

/// While it lives, cancelling `from` (may be null) cancels `to`.
class TokenLink {
 public:
  TokenLink(CancellationTokenPtr from, const CancellationTokenPtr& to) : from_(std::move(from)) {
    if (from_) {
      key_ = from_->AddCallback([to] { to->Cancel(); });
    }
  }
  ~TokenLink() {
    if (from_) {
      from_->RemoveCallback(key_);
    }
  }
  TokenLink(const TokenLink&) = delete;
  TokenLink& operator=(const TokenLink&) = delete;

 private:
  CancellationTokenPtr from_;
  std::int64_t key_ = 0;
};

}  // namespace fleuve::connectors
