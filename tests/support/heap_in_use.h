#pragma once

#include <malloc.h>

#include <cstdint>

namespace fusion {

/// Bytes that this process has taken from the C library's allocator and not given back, what it
/// rounds up included. Another allocator (jemalloc, a sanitizer's) leaves it at 0.
inline int64_t HeapInUse() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace fusion
