#pragma once

namespace fusion {

/// Keys in one GetKernels call: the service refuses more, the client asks several times.
inline constexpr int kMaxKernelKeys = 4096;

}  // namespace fusion
