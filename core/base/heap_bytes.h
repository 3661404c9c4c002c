#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace fusion {

/// Approximate overhead of an allocator per allocation, rounding included.
inline constexpr int64_t kAllocationBytes = 16;

/// Approximate bytes of heap that a value holds, without its own sizeof. Caches charge entries by
/// it. Each type declares its overload beside itself. A part that several values share counts for
/// each of them.
inline int64_t HeapBytes(const std::string& text) {
  constexpr size_t kInline = 15;
  if (text.capacity() <= kInline) return 0;
  return static_cast<int64_t>(text.capacity()) + kAllocationBytes;
}

template <typename T>
int64_t HeapBytes(const std::vector<T>& values) {
  if (values.capacity() == 0) return 0;
  int64_t bytes = static_cast<int64_t>(values.capacity() * sizeof(T)) + kAllocationBytes;
  if constexpr (!std::is_trivially_copyable_v<T>) {
    for (const T& value : values) bytes += HeapBytes(value);
  }
  return bytes;
}

}  // namespace fusion
