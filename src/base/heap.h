#pragma once

/// \file
/// The C library's heap.

namespace fleuve {

/// Gives memory that was freed back to the system where it is much (64 MiB or more). The C library keeps a heap for
/// each of many threads and the freed pages of each, so that work done by one thread after another adds up. Takes
/// milliseconds: for the end of a query, not for each batch. Any thread.
void ReturnFreedMemory();

}  // namespace fleuve
