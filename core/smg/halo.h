#pragma once

#include <optional>
#include <vector>

#include "core/smg/smg.h"

namespace fusion {

/// A dim of which a block works on as much as others reach: where readers that are cut into blocks
/// look at it through windows or at an offset. Blocks next to each other may reach the same
/// elements: each computes them for itself.
struct Halo {
  DimId dim = -1;
  /// Functions of the coordinates of dims, the halo's own not among them: all places that are
  /// looked at.
  std::vector<IndexExpr> reached;
  bool operator==(const Halo&) const = default;
};

/// The halos that follow from cutting the dims `cut` into blocks, each behind those that it depends
/// on. Empty: every op inside is read where it is written. nullopt if two of them reach for each
/// other. Pure.
std::optional<std::vector<Halo>> HalosOf(const Smg& smg, const std::vector<DimId>& cut);

/// Elements of a halo's dim that blocks of t elements of a cut dim reach: step * t + extra.
struct HaloReach {
  DimId dim = -1;
  int64_t step = 1;
  int64_t extra = 0;  // above 0: what neighbouring blocks both compute; below: what nobody needs
};

/// What tiles of `cut` reach in each halo that follows from it. `halos` is HalosOf(smg, {cut}).
std::vector<HaloReach> ReachOf(const Smg& smg, DimId cut, const std::vector<Halo>& halos);

/// The part of a halo's dim, which has `extent` elements, that a block works on whose windows of
/// the other dims are window(d): what it reaches inside of the dim, one element at least.
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
