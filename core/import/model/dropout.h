#pragma once

#include <vector>

#include "core/graph/build/builder.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// Adds a Dropout node as in inference: the output is the input (an Identity); the mask, if
/// `mask_used`, is all ones. Returns the ids of output and mask (kNoTensor if unused).
///
/// Unimplemented for a Dropout in training mode with a ratio other than 0, and for a mask of
/// symbolic shape. Messages start with the node.
absl::StatusOr<std::vector<TensorId>> AddDropout(const FlatNode& node,
                                                 const std::vector<TensorId>& inputs,
                                                 bool mask_used,
                                                 const std::vector<std::string>& output_names,
                                                 GraphBuilder* builder);

}  // namespace fusion
