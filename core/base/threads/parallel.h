#pragma once

#include <cstdint>
#include <functional>

namespace fusion {

/// Calls body(begin, end) on disjoint ranges that cover [0, n), on up to `threads` threads (the
/// caller is one of them), and returns when all are done. Starts threads in every call: meant for
/// reference computations. With threads <= 1 or n == 1 it is a plain call. Uses fewer threads if
/// the system has no more. `body` must not throw.
void ParallelFor(int threads, int64_t n, const std::function<void(int64_t, int64_t)>& body);

}  // namespace fusion
