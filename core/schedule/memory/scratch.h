#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/memory/block_windows.h"

namespace fusion {

/// Rows this many bytes apart share one set of every x86 core's L1 cache and evict each other from
/// it.
inline constexpr int64_t kAliasBytes = 4096;

/// Where a local buffer lies in the scratch of a block.
struct ScratchSlot {
  bool used = false;
  int64_t offset = 0;  // bytes
  int64_t bytes = 0;
  Dims extents;  // largest window of each dim where the buffer is allocated
  Dims strides;  // elements; blocked layouts: of the dims that are not blocked, in elements
};

struct ScratchPlan {
  std::vector<ScratchSlot> slots;  // by buffer; params and accumulators have none
  int64_t bytes = 0;               // of the largest block
};

/// Packs the staged buffers of each block into one scratch area, reusing space once a buffer is
/// dead. Rows are padded to whole vectors, and away from multiples of kAliasBytes. Offsets are
/// multiples of `alignment` bytes. Pure.
ScratchPlan PlanScratch(const Schedule& schedule, int64_t vector_bytes, int64_t alignment = 64);

/// Where the workspace buffers of a schedule lie.
struct WorkspacePlan {
  std::vector<int64_t> offsets;  // bytes, by buffer; of workspace with memory of its own
  int64_t bytes = 0;
};

/// Packs the workspace buffers, each alive from the first phase that touches it to the last.
/// Offsets are multiples of `alignment` bytes. Pure.
WorkspacePlan PlanWorkspace(const Schedule& schedule, int64_t alignment = 64);

}  // namespace fusion
