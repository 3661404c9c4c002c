#pragma once

#include <random>

#include "client/fused_model.h"

namespace fusion {

/// Values for an input of a benchmark, the same in each run. Floats are normally distributed. All
/// other elements are one: that is valid as a mask, id or position.
inline HostTensor PlainValues(const PlanTensor& tensor) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  HostTensor out(tensor.dtype, tensor.dims);
  for (int64_t i = 0; i < out.elements(); ++i) {
    if (IsFloat(tensor.dtype)) {
      out.SetDouble(i, normal(random));
    } else {
      out.SetInt(i, 1);
    }
  }
  return out;
}

}  // namespace fusion
