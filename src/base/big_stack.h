#pragma once

/// \file
/// Runs deep recursion (parsing, analysis, planning of plans with thousands of levels) where it cannot overflow.

#include <functional>

namespace fleuve {

/// Runs `work` to its end on a stack of 512 MiB (address space; only touched pages cost memory) and returns. Nested
/// calls run on the stack that is already there. Threads: any; the work runs on a thread of its own while the caller
/// waits.
void RunOnBigStack(const std::function<void()>& work);

}  // namespace fleuve
