#pragma once

/// \file
/// SIGTERM and SIGINT as events that a thread waits for.

#include <cstdint>

namespace fleuve::cli {

/// Blocks both signals for this thread and all that it starts: call before any other thread exists.
void BlockEndSignals();
/// Waits for one of them and returns it.
int WaitForEndSignal();
/// Sends this process SIGTERM once its standard input has come to its end; what is read there until then counts for
/// nothing.
void EndWithInput();
/// Ends this process after `after_ms` whatever it does then: for work that does not hear that it is cancelled. What is
/// durable stays so.
void EndProcessAfter(std::int64_t after_ms);
/// Gives both their usual effect again (in a child between fork and exec, or while a shell waits for input).
void UnblockEndSignals();

}  // namespace fleuve::cli
