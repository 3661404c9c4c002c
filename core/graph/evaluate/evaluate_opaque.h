#pragma once

#include <vector>

#include "core/graph/evaluate/evaluate_loop.h"

namespace fusion {

/// Computes the whole output (of type `type`) of an op of kind kOpaque. Internal to the evaluator.
absl::Status EvaluateOpaque(const LoopOp& op, const std::vector<const EvaluatedValue*>& inputs,
                            const TensorType& type, EvaluatedValue* out);

/// Elements that it touches, in the unit of EvaluationPoints.
double OpaquePoints(const LoopOp& op, const std::vector<Dims>& inputs);

}  // namespace fusion
