#pragma once

#include <cstdint>

namespace fusion {

/// Constants up to this size always stay inline (InlineRule).
inline constexpr int64_t kInlineLimitBytes = 1024;
/// Masks and index tables up to this size stay inline too.
inline constexpr int64_t kInlineMaskLimitBytes = int64_t{2} << 20;

}  // namespace fusion
