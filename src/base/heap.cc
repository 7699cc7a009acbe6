#include "base/heap.h"

#include <malloc.h>

#include <cstddef>

namespace fleuve {

namespace {
constexpr std::size_t kWorthwhileBytes = 64U << 20U;
}

void ReturnFreedMemory() {
  if (mallinfo2().fordblks >= kWorthwhileBytes) {
    malloc_trim(0);
  }
}

}  // namespace fleuve
