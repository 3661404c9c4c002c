#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Checks and output types, derived from the definition of an op (OpDef).

/// InvalidArgument unless the number of inputs is in range, the required inputs and attributes are
/// present, and every attribute is declared by the op, of the declared kind and, for ops of models,
/// within kMaxParam (ParamSpec::any_integer).
absl::Status CheckCall(const OpCall& call);

/// CheckCall, then the types of all outputs, in order; derived from whichever of OpDef::body,
/// decompose, opaque, value_of_types and repeats the op has. Adds the size of the call's expansion
/// to `*count`, if given. Errors are InvalidArgument or Unimplemented. The message does not name
/// the node: the caller adds it.
absl::StatusOr<std::vector<TensorType>> InferOutputTypes(const OpCall& call,
                                                         StepCount* count = nullptr);

}  // namespace fusion
