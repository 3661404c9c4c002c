#pragma once

#include "core/bundle/options.h"
#include "core/tensor/compare.h"

namespace fusion {

/// Tolerance of what a plan with these numerics computes, against what its graph says.
inline Tolerance ToleranceOf(Numerics numerics, DType dtype) {
  return numerics == Numerics::kFast ? RoundedTolerance(dtype) : DefaultTolerance(dtype);
}

}  // namespace fusion
