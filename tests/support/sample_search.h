#pragma once

#include "core/bundle/tile_search.h"
#include "tests/support/sample_lock.h"

namespace fusion {

/// A search that says something in every field.
inline TileSearch SampleSearch() {
  TunedKernel kernel{.ops = {0, 2},
                     .group = 1,
                     .chosen = 2,
                     .rival = 1,
                     .pairs = 21,
                     .ratio = 0.9,
                     .ratio_low = 0.85,
                     .ratio_high = 0.95,
                     .reason = "cut 2 is faster",
                     .recalled = true};
  for (const LockedChoice& choice : SampleLock().choices) {
    kernel.tried.push_back({.choice = choice,
                            .tiles = "d0:8",
                            .estimated_us = 10,
                            .runs = 7,
                            .median_us = 11,
                            .low_us = 10.5,
                            .high_us = 11.5,
                            .reason = "late"});
  }
  return {.level = 2,
          .state = TileSearchState::kCutShort,
          .reason = "out of time",
          .conditions = "2 threads",
          .seconds = 1.5,
          .measured = 4,
          .recalled = 3,
          .changed = 1,
          .kernels = {kernel}};
}

}  // namespace fusion
