#pragma once

#include <algorithm>
#include <cstdint>

namespace fusion {

/// a * b and a + b for non-negative a and b, clamped to 2^62.
constexpr int64_t SaturatedProduct(int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 62;
  return b > 0 && a > kMost / b ? kMost : a * b;
}
constexpr int64_t SaturatedSum(int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 62;
  return a > kMost - std::min(b, kMost) ? kMost : a + b;
}

}  // namespace fusion
