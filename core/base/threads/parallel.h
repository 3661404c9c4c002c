#pragma once

#include <cstdint>
#include <functional>

namespace fusion {

/// Calls body(begin, end) on disjoint ranges that cover [0, n), on up to `threads` threads (the
/// caller is one of them), and returns when all are done. For reference computations: threads are
/// started per call. With threads <= 1 or n <= 1 it is a plain call. `body` must not throw.
void ParallelFor(int threads, int64_t n, const std::function<void(int64_t, int64_t)>& body);

}  // namespace fusion
