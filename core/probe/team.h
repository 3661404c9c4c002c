#pragma once

#include <functional>

namespace fusion {

/// What some work on threads took.
struct Burst {
  double work_per_s = 0;  // of all threads together
  double cpu_share = 1;   // least of all threads: CPU time of its work, divided by the wall time
};

/// Runs body(thread), which returns the work that it did, on `threads` threads at once; with one
/// thread on the caller's. Starts the threads and waits for them.
Burst RunOnThreads(int threads, const std::function<double(int)>& body);

}  // namespace fusion
