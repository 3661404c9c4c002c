#pragma once

#include <cstdint>

namespace fusion {

/// Constants up to this size always travel with their bytes.
inline constexpr int64_t kInlineLimitBytes = 1024;
/// Masks and index tables up to this size do so too.
inline constexpr int64_t kInlineMaskLimitBytes = int64_t{2} << 20;

}  // namespace fusion
