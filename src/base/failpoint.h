#pragma once

/// \file
/// Named places where a test makes the process die, stop or fail. In every build; armed only by the environment
/// variable FLEUVE_FAILPOINTS when the process starts, so an unarmed place costs one load.
///
///     FLEUVE_FAILPOINTS="stream.offsets.written=kill@3,delta.commit.linked=error"
///
/// Actions: `kill` (SIGKILL), `stop` (SIGSTOP), `error` (the place fails with FLEUVE_FAILPOINT), `abort`.
/// `@N`: at the Nth pass from 1 (default 1); every other pass does nothing.

#include <atomic>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fleuve {

namespace internal {
extern std::atomic<bool> failpoints_armed;
Result<void> HitFailpoint(std::string_view name);
}  // namespace internal

/// Passes the place `name` (`room.place`); an Error only where a test asked for one.
inline Result<void> Failpoint(std::string_view name) {
  if (!internal::failpoints_armed.load(std::memory_order_relaxed)) {
    return {};
  }
  return internal::HitFailpoint(name);
}

/// Reads FLEUVE_FAILPOINTS; called once by `main` and by tests. kInvalidArgument names what cannot be read.
Result<void> ArmFailpointsFromEnvironment();

}  // namespace fleuve
