#pragma once

#include <cstdint>

namespace fusion {

/// Figures of the system about this process; 0 where they are not available.
struct ProcessFacts {
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t open_fds = 0;
  int64_t max_fds = 0;
  double start_unix_seconds = 0;
};
ProcessFacts ReadProcessFacts();

/// resident_bytes alone; takes a few microseconds.
int64_t ResidentBytes();

}  // namespace fusion
