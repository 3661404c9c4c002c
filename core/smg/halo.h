#pragma once

#include <optional>
#include <vector>

#include "core/smg/smg.h"

namespace fusion {

/// A dim whose range per block follows from the blocks of other dims, because readers access it
/// through windows or at an offset. Neighbouring blocks may access the same elements; each block
/// then computes them itself.
struct Halo {
  DimId dim = -1;
  /// All indices at which the dim is accessed, as functions of the coordinates of other dims. Their
  /// values over a block are the block's range of accessed indices, its *reach*.
  std::vector<IndexExpr> reached;
  bool operator==(const Halo&) const = default;
};

/// The halos that follow from tiling the dims `cut` into blocks. Each comes after the halos that it
/// depends on. Empty: every op inside is read at the coordinates where it writes. nullopt if halos
/// depend on each other in a cycle. Pure; any thread.
std::optional<std::vector<Halo>> HalosOf(const Smg& smg, const std::vector<DimId>& cut);

/// A block of t elements of the tiled dim accesses a range of at most step * t + extra elements of
/// the halo's dim.
struct HaloReach {
  DimId dim = -1;
  int64_t step = 1;
  int64_t extra = 0;  // > 0: elements that neighbours both compute; < 0: that no block reads
};

/// The reach of tiles of `cut` in each halo; one entry per halo, in the same order. `halos` must be
/// HalosOf(smg, {cut}). Pure; any thread.
std::vector<HaloReach> ReachOf(const Smg& smg, DimId cut, const std::vector<Halo>& halos);

/// The range of a halo's dim that a block works on: its reach, clamped to the dim of `extent`
/// elements, and at least one element. `window(d)` returns the IndexRange of the block along dim d;
/// for a dim that is not tiled, its whole range.
template <typename WindowOf>
IndexRange HaloRange(const Halo& halo, int64_t extent, const WindowOf& window) {
  IndexRange range{extent, 0};
  for (const IndexExpr& e : halo.reached) {
    IndexRange here = RangeOf(e, window);
    range.begin = std::min(range.begin, here.begin);
    range.end = std::max(range.end, here.end);
  }
  range.begin = std::clamp<int64_t>(range.begin, 0, std::max<int64_t>(extent - 1, 0));
  range.end = std::min(std::max(range.end, range.begin + 1), extent);
  return range;
}

}  // namespace fusion
