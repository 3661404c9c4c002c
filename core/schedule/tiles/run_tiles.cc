#include "core/schedule/tiles/run_tiles.h"

#include <algorithm>

namespace fusion {

int64_t RunTile(int64_t extent, int64_t most, int64_t step, int64_t others, int64_t threads) {
  int64_t tiles = (extent + most - 1) / most;
  if (tiles < 1 || others < 1) return most;
  if (tiles * others < 4 * threads) {
    const int64_t tasks = (tiles * others + threads - 1) / threads * threads;
    tiles = (tasks + others - 1) / others;
  }
  const int64_t tile = ((extent + tiles - 1) / tiles + step - 1) / step * step;
  return std::min(tile, most);
}

}  // namespace fusion
