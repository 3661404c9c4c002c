#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/memory/block_windows.h"

namespace fusion {

/// Distance in bytes of addresses in the same set of the L1 cache, on all x86 cores: rows this far
/// apart evict each other.
inline constexpr int64_t kAliasBytes = 4096;

/// The place of a local buffer in the scratch of a block.
struct ScratchSlot {
  bool used = false;   // false for params, workspace and accumulators
  int64_t offset = 0;  // bytes
  int64_t bytes = 0;
  Dims extents;  // largest window of each dim at the AllocStmt
  Dims strides;  // in elements; see ElementStrides for blocked layouts
};

struct ScratchPlan {
  std::vector<ScratchSlot> slots;  // by buffer
  int64_t bytes = 0;               // size of the scratch of the largest block
};

/// Packs the staged buffers of each block into one scratch area. Buffers that are not alive
/// together share space. Rows are padded to whole vectors of `vector_bytes` bytes, and away from
/// strides that are multiples of kAliasBytes. Offsets are multiples of `alignment` bytes. Pure.
ScratchPlan PlanScratch(const Schedule& schedule, int64_t vector_bytes, int64_t alignment = 64);

/// The places of the workspace buffers of a schedule.
struct WorkspacePlan {
  /// In bytes, by buffer; valid for workspace buffers with same_as < 0.
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

/// Packs the workspace buffers. Each is alive from the first phase that accesses it to the last.
/// Offsets are multiples of `alignment` bytes. Pure.
WorkspacePlan PlanWorkspace(const Schedule& schedule, int64_t alignment = 64);

}  // namespace fusion
