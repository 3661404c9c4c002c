#pragma once

#include <cstdint>

namespace fusion {

/// The tile of a dim of `extent` elements that kernels of families choose when they run: at most
/// `most`, a multiple of `step` below that, and as long as possible so that each of `threads` has
/// equally much to do where the other dims make `others` blocks. Generated sources hold the same
/// function (RunTileFunction of the CPU backend). All at least 1, but `extent` may be 0.
int64_t RunTile(int64_t extent, int64_t most, int64_t step, int64_t others, int64_t threads);

}  // namespace fusion
