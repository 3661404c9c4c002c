#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/evaluate/evaluate.h"

namespace fusion {

/// Offset of an indexed element of a value within its box, in elements: base + sum over axes of
/// step * coordinate, plus the indirect parts.
struct LoopAddress {
  int64_t base = 0;
  std::vector<int64_t> step;  // per axis
  // A dim whose index is read from another input adds stride * (that index).
  struct Indirect {
    int input;
    int64_t stride;
    int64_t begin;   // of the box
    int64_t size;    // of the box
    int64_t extent;  // added to negative indices; the size of the box if unknown
  };
  std::vector<Indirect> indirect;
};

/// The address of an index map over `axes` axes into a value held in `box`. Internal to the
/// evaluator.
LoopAddress MakeAddress(const IndexMap& map, const Box& box, size_t axes);

}  // namespace fusion
