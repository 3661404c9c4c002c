#pragma once

#include <vector>

#include "core/graph/evaluate/evaluate.h"

namespace fusion {

/// The part of a value the evaluator holds: doubles for float types, 64-bit integers for the
/// others, row-major in `box`.
struct EvaluatedValue {
  DType dtype = DType::kF32;
  Box box;
  std::vector<double> reals;
  std::vector<int64_t> integers;
};

/// Computes `out->box` of a loop op from parts of its inputs that cover what the box needs.
/// Internal to the evaluator. With `log`, what the expressions decide is added to it, and one
/// thread does all.
absl::Status EvaluateLoop(const LoopBody& body, const std::vector<const EvaluatedValue*>& inputs,
                          int threads, EvaluatedValue* out, DecisionLog* log = nullptr);

/// Points that computing `box` of the op's output visits; of a reduction at places that are read,
/// the points that name a place.
double PointsOf(const LoopBody& body, const Box& box);

/// The box of the op's output that computing `box` really produces (dims that several axes write
/// are done whole).
Box ComputedBox(const LoopBody& body, const Box& box);

/// The box of input `input` (of extents `extents`) that computing `box` reads.
Box NeededBox(const LoopBody& body, int input, const Dims& extents, const Box& box);

}  // namespace fusion
