#pragma once

#include <cstdint>
#include <vector>

namespace fusion {

/// A block of memory that is needed from step `first` to step `last`, both included.
struct MemoryBlock {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  /// This block may take the place of another one, whose last step is this one's first and whose
  /// size is the same; -1: none.
  int in_place_of = -1;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // by block, multiples of the alignment
  int64_t bytes = 0;
};

/// Packs blocks into one area so that blocks alive at the same step never overlap, largest first,
/// each at the lowest free offset. Deterministic.
MemoryPlan PlanMemory(const std::vector<MemoryBlock>& blocks, int64_t alignment = 64);

}  // namespace fusion
