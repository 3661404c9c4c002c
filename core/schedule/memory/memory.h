#pragma once

#include <cstdint>
#include <vector>

namespace fusion {

/// A block of memory that is alive from step `first` to step `last`, both included.
struct MemoryBlock {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  /// Position of an earlier block whose memory this one may reuse; -1: none. Ignored unless that
  /// block has the same size and its `last` is this block's `first`.
  int in_place_of = -1;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // in bytes, by block; multiples of the alignment
  int64_t bytes = 0;
};

/// Assigns offsets in one area of memory. Blocks alive at the same step never overlap, except
/// in-place ones. Largest first, each at the lowest free offset. Deterministic.
MemoryPlan PlanMemory(const std::vector<MemoryBlock>& blocks, int64_t alignment = 64);

}  // namespace fusion
