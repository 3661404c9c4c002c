#include "core/runtime/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace fusion {

int UsableCores() {
  // The mask of a machine with more cores than a cpu_set_t holds does not fit into a smaller one.
  for (size_t cores = CPU_SETSIZE; cores <= (1u << 20); cores *= 4) {
    cpu_set_t* set = CPU_ALLOC(cores);
    if (set == nullptr) break;
    size_t bytes = CPU_ALLOC_SIZE(cores);
    int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace fusion
