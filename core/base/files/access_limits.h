#pragma once

#include <cstddef>

namespace fusion {

/// Maximum lengths, in bytes, of the names in the token file (--tokens).
inline constexpr size_t kMaxCallerNameBytes = 128;
inline constexpr size_t kMaxTenantBytes = 64;

}  // namespace fusion
