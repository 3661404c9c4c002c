#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/evaluate/evaluate.h"

namespace fusion {

/// Where element `index` of a value lies in its box: base + sum over axes of step * coordinate.
struct LoopAddress {
  int64_t base = 0;
  std::vector<int64_t> step;  // per axis
  // Indirect dims add stride * (value of another input).
  struct Indirect {
    int input;
    int64_t stride;
    int64_t begin;   // of the box
    int64_t size;    // of the box
    int64_t extent;  // negative indices count from here; unknown extents equal the box
  };
  std::vector<Indirect> indirect;
};

/// Of an index map over `axes` axes into a value that is held in `box`. Internal to the evaluator.
LoopAddress MakeAddress(const IndexMap& map, const Box& box, size_t axes);

}  // namespace fusion
