#pragma once

#include <string>
#include <vector>

#include "core/import/bodies/control_flow.h"

namespace fusion {

/// True for FlexAttention of domain ai.onnx.preview.
bool IsFlexAttention(const FlatNode& node);

/// Adds softmax(q k^T * scale) v. The bodies `score_mod` and `prob_mod` of the node are applied to
/// the scores and to their softmax, in the precision that the node gives. `inputs` are the node's
/// inputs, then the outer values of its bodies. The result is named `output`.
///
/// InvalidArgument for inputs that do not fit and for a body that changes the shape or type of its
/// input; Unimplemented if the number of heads is symbolic. Messages start with the node.
absl::StatusOr<TensorId> AddFlexAttention(const FlatNode& node, const std::vector<TensorId>& inputs,
                                          const AddBody& add, const std::string& output,
                                          GraphBuilder* builder);

}  // namespace fusion
