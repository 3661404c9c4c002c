#pragma once

#include <absl/container/inlined_vector.h>

#include <optional>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// The lengths that a dim's window can have at some point of a schedule. Without halos: one, or a
/// full tile and a shorter last one.
using WindowLengths = absl::InlinedVector<int64_t, 2>;

/// The lengths of tiles of `tile` elements in windows of these lengths, ascending, each once.
WindowLengths TileLengths(const WindowLengths& windows, int64_t tile);

/// The windows of a dim over the blocks of a grid.
struct BlockWindows {
  WindowLengths lengths;  // all that occur, ascending
  double average = 0;
  /// Number of tiles of the dim; for a halo, of combinations of the grid tiles it depends on.
  double blocks = 1;
  bool clipped = false;  // of a halo: some block reaches beyond the dim and is clipped

  int64_t longest() const { return lengths.empty() ? 0 : lengths.back(); }
};

/// The windows of every dim (by DimId) in blocks of `grid` with these halos. A dim in neither is
/// whole. The cost depends on the number of different lengths, not on the number of blocks. Pure.
std::vector<BlockWindows> WindowsOfBlocks(const std::vector<ScheduleDim>& dims,
                                          const std::vector<GridDim>& grid,
                                          const std::vector<Halo>& halos);

/// Limit of different window lengths of a dim: the CPU backend writes code for each.
inline constexpr size_t kMostWindowLengths = 1024;

/// A halo whose windows have more than kMostWindowLengths lengths because they grow from block to
/// block; nullopt if there is none. Bounded work: for grids from untrusted sources. Pure.
std::optional<DimId> HaloOfManyLengths(const std::vector<ScheduleDim>& dims,
                                       const std::vector<GridDim>& grid,
                                       const std::vector<Halo>& halos);

/// The longest window of every dim: the room that each block needs.
Dims LongestWindows(const std::vector<ScheduleDim>& dims, const std::vector<GridDim>& grid,
                    const std::vector<Halo>& halos);

}  // namespace fusion
