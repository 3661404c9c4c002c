#pragma once

#include <cstdint>

namespace fusion {

/// The tile that kernels of families choose when they run, for a dim of `extent` elements: at most
/// `most`, and a multiple of `step` below that. It is as long as possible. If there would be fewer
/// than 4 tasks for each of `threads`, the number of tasks is rounded up to a multiple of
/// `threads`. `others`: number of blocks that the other dims make. `extent` and `others` may be 0,
/// then `most` is returned; all other arguments are at least 1. Generated sources contain the same
/// function (RunTileFunction of the CPU backend).
int64_t RunTile(int64_t extent, int64_t most, int64_t step, int64_t others, int64_t threads);

}  // namespace fusion
