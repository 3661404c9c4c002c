#pragma once

#include <absl/container/inlined_vector.h>

#include <optional>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// The lengths a dim's window can have at some place of a schedule: one, or a full tile and a
/// shorter last one.
using WindowLengths = absl::InlinedVector<int64_t, 2>;

/// Lengths of tiles of `tile` in windows of these lengths, ascending and without repeats.
WindowLengths TileLengths(const WindowLengths& windows, int64_t tile);

/// What the windows of a dim are over the blocks of a grid.
struct BlockWindows {
  WindowLengths lengths;  // that occur, ascending
  double average = 0;
  double blocks = 1;     // that the dim falls into: equal windows are one
  bool clipped = false;  // of a halo: some block reaches beyond the dim

  int64_t longest() const { return lengths.empty() ? 0 : lengths.back(); }
};

/// The windows of every dim in blocks of `grid` with these halos; a dim that neither names is
/// whole. The work does not grow with the number of blocks, only with that of lengths. Pure.
std::vector<BlockWindows> WindowsOfBlocks(const std::vector<ScheduleDim>& dims,
                                          const std::vector<GridDim>& grid,
                                          const std::vector<Halo>& halos);

/// More lengths than this are not worth the code that is written for each.
inline constexpr size_t kMostWindowLengths = 1024;

/// A halo's dim whose windows have more lengths than that: they grow from block to block. For
/// grids that nobody vouches for. Pure.
std::optional<DimId> HaloOfManyLengths(const std::vector<ScheduleDim>& dims,
                                       const std::vector<GridDim>& grid,
                                       const std::vector<Halo>& halos);

/// The longest windows: what each block must have room for.
Dims LongestWindows(const std::vector<ScheduleDim>& dims, const std::vector<GridDim>& grid,
                    const std::vector<Halo>& halos);

}  // namespace fusion
