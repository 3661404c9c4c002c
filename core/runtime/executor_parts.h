#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/threads/mutex.h"
#include "core/runtime/executor.h"
#include "core/runtime/loop_walk.h"

namespace fusion {

// The private types of Executor, for its own sources.

inline constexpr uint64_t kPage = 4096;
// Every run reads all packed weights once. In small pages each 4 KiB need an address translation,
// and the sets of a cache that they use depend on chance.
inline constexpr uint64_t kHugePage = uint64_t{2} << 20;

// Page-aligned bytes.
struct Executor::Memory {
  static uint64_t Rounded(uint64_t bytes) { return (bytes / kPage + 1) * kPage; }
  // `read_whole`: every run reads all of it, so huge pages are requested. `what`: for the error
  // message, ResourceExhausted.
  static absl::StatusOr<Memory> Allocate(uint64_t bytes, std::string_view what,
                                         bool read_whole = false) {
    Memory memory;
    uint64_t rounded = Rounded(bytes);
    const bool huge = read_whole && bytes >= kHugePage;
    if (rounded <= INT64_MAX && FitsInMemory(static_cast<int64_t>(rounded))) {
      void* data = nullptr;
      const int failed = posix_memalign(&data, huge ? kHugePage : kPage, rounded);
      if (failed == 0) memory.data.reset(data);
    }
    if (memory.data == nullptr) {
      return ResourceExhausted("executor: no memory for ", bytes, " bytes of ", what);
    }
    // Whole huge pages only: a last one would use memory for nothing. The kernel may ignore the
    // advice.
    if (huge) (void)madvise(memory.data.get(), bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    return memory;
  }
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data;

  void* At(int64_t offset) const { return static_cast<char*>(data.get()) + offset; }
};

// The part of a launch that is the same in every run.
struct Executor::Step {
  const LoadedKernel* kernel = nullptr;
  size_t position = 0;         // in Plan::kernels
  std::vector<int64_t> tasks;  // by phase
};

// The arguments of all launches, in order.
struct Executor::CallTable {
  std::vector<FusionTensor> tensors;
  std::vector<FusionInt64> elements;          // element counts of `tensors`
  std::vector<FusionGuardedKernelArgs> args;  // by launch; they point into the other two
};

// The current phase of a run, as its workers see it.
struct Executor::PhaseRun {
  const LoadedKernel* kernel = nullptr;
  const FusionGuardedKernelArgs* args = nullptr;
  int phase = 0;
  std::atomic<bool> failed{false};
  Mutex mutex;
  absl::Status first ABSL_GUARDED_BY(mutex);

  void Do(int64_t begin, int64_t end, int worker);

  absl::Status TakeStatus() {
    if (!failed.load(std::memory_order_relaxed)) return absl::OkStatus();
    MutexLock lock(&mutex);
    failed.store(false, std::memory_order_relaxed);
    return std::exchange(first, absl::OkStatus());
  }
};

// The values that depend on the plan's symbols.
struct Executor::Shapes {
  std::vector<int64_t> units;               // of the symbols
  std::vector<std::vector<int64_t>> sizes;  // by kernel: its run-time dims
  std::vector<Dims> strides;                // by plan tensor
  std::vector<int64_t> offsets;             // by plan tensor, in bytes
  std::vector<Step> steps;                  // by launch
};

// The state of one run.
struct Executor::Context {
  Memory arena;
  Memory scratch_area;
  Memory workspace;
  CallTable table;
  Shapes shapes;  // if the plan has symbols: those of the last run
  PhaseRun phase;
  std::vector<FusionKernelFault> faults;  // by worker; empty unless a kernel is guarded
  // Captures one pointer, so it allocates nothing.
  TaskBody body = [this](int64_t begin, int64_t end, int worker) { phase.Do(begin, end, worker); };
  std::vector<Nanoseconds> boundaries;  // of a timed run: its begin, then the end of each launch
  std::vector<Nanoseconds> spent;       // with loops: by launch, the sum of all passes
  std::optional<LoopWalk> walk;         // set if the plan has loops
  bool fresh = true;                    // its memory has not been touched by a run yet
};

/// Attaches `fault` to `status`, for RunFaultOf.
void SetRunFault(const RunFault& fault, absl::Status* status);

}  // namespace fusion
