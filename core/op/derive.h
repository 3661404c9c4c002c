#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Everything that follows from an op's definition, so that no op states it twice.

/// Number of inputs in range, attributes of the declared kinds, required ones present.
absl::Status CheckCall(const OpCall& call);

/// Types of all outputs: from the loop bodies, the decomposition or the value.
absl::StatusOr<std::vector<TensorType>> InferOutputTypes(const OpCall& call);

/// Arithmetic of one loop body over its whole iteration space.
struct LoopCost {
  /// Points of the iteration space.
  int64_t points = 0;
  /// Floating-point operations as papers count them: a multiply-add is 2.
  double flops = 0;
  /// ScalarInfo::cost of the expression plus the merge, summed over points.
  double scalar_cost = 0;
};
LoopCost DeriveCost(const LoopBody& body);

}  // namespace fusion
