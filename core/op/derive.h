#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Everything that follows from an op's definition, so that no op states it twice.

/// Number of inputs in range, attributes of the declared kinds, required ones present.
absl::Status CheckCall(const OpCall& call);

/// Types of all outputs: from the loop bodies, the decomposition or the value. `count`, if given,
/// is raised by what the call is taken apart into.
absl::StatusOr<std::vector<TensorType>> InferOutputTypes(const OpCall& call,
                                                         StepCount* count = nullptr);

}  // namespace fusion
