#pragma once

#include <functional>

namespace fusion {

/// What some work on threads took.
struct Burst {
  double work_per_s = 0;  // of all threads together
  double cpu_share =
      1;  // least of all threads: CPU time of its work, by the wall time since the start
};

/// Runs body(thread), which returns the work that it did, on `threads` threads at once; with one
/// thread on the caller's. Starts the threads and waits for them. Throws
/// std::system_error if the system cannot start them.
Burst RunOnThreads(int threads, const std::function<double(int)>& body);

}  // namespace fusion
