#pragma once

/// \file
/// SIGTERM and SIGINT as events that a thread waits for.

namespace fleuve::cli {

/// Blocks both signals for this thread and all that it starts: call before any other thread exists.
void BlockEndSignals();
/// Waits for one of them and returns it.
int WaitForEndSignal();
/// Sends this process SIGTERM once its standard input has come to its end; what is read there until then counts for
/// nothing.
void EndWithInput();
/// Gives both their usual effect again (in a child between fork and exec, or while a shell waits for input).
void UnblockEndSignals();

}  // namespace fleuve::cli
