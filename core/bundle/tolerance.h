#pragma once

#include "core/bundle/options.h"
#include "core/tensor/compare.h"

namespace fusion {

/// Tolerance for comparing results of a plan with those of the evaluator.
inline Tolerance ToleranceOf(Numerics numerics, DType dtype) {
  return numerics == Numerics::kFast ? RoundedTolerance(dtype) : DefaultTolerance(dtype);
}

}  // namespace fusion
