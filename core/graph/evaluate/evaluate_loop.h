#pragma once

#include <vector>

#include "core/graph/evaluate/evaluate.h"

namespace fusion {

/// The part of a value that the evaluator holds, row-major in `box`: `reals` for float types,
/// `integers` for other types.
struct EvaluatedValue {
  DType dtype = DType::kF32;
  Box box;
  std::vector<double> reals;
  std::vector<int64_t> integers;
};

/// Computes `out->box` of a loop op. `inputs` are parts that cover what the box needs (NeededBox).
/// If `log` is set, decisions of the expressions are added to it and only one thread is used.
/// Internal to the evaluator.
absl::Status EvaluateLoop(const LoopBody& body, const std::vector<const EvaluatedValue*>& inputs,
                          int threads, EvaluatedValue* out, DecisionLog* log = nullptr);

/// Number of points visited to compute `box` of the op's output. For a scatter reduction (place
/// read from an input) these are the points that name a place.
double PointsOf(const LoopBody& body, const Box& box);

/// The box that is really computed for `box`: dims that are not written by exactly one axis are
/// computed whole.
Box ComputedBox(const LoopBody& body, const Box& box);

/// The part of input `input` (with extents `extents`) that computing `box` reads.
Box NeededBox(const LoopBody& body, int input, const Dims& extents, const Box& box);

}  // namespace fusion
