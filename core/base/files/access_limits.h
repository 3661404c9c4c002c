#pragma once

#include <cstddef>

namespace fusion {

/// Bytes that names in the file of --tokens have at most.
inline constexpr size_t kMaxCallerNameBytes = 128;
inline constexpr size_t kMaxTenantBytes = 64;

}  // namespace fusion
