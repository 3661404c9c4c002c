#pragma once

#include <string>
#include <vector>

#include "core/import/bodies/control_flow.h"

namespace fusion {

/// True for FlexAttention of domain ai.onnx.preview.
bool IsFlexAttention(const FlatNode& node);

/// Adds softmax(q k^T * scale) v with what its bodies `score_mod` and `prob_mod` make of the scores
/// and of their softmax, in the precision that the node says. `inputs` are those of the node, then
/// what its bodies capture. The result has the name `output`.
///
/// InvalidArgument for inputs that do not fit and a body that changes shape or type of what it
/// gets; Unimplemented for symbolic dims of heads. Messages start with the node.
absl::StatusOr<TensorId> AddFlexAttention(const FlatNode& node, const std::vector<TensorId>& inputs,
                                          const AddBody& add, const std::string& output,
                                          GraphBuilder* builder);

}  // namespace fusion
