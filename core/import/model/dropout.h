#pragma once

#include <vector>

#include "core/graph/build/builder.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// Adds a Dropout node to `builder`: at inference time its output is its input (an Identity) and
/// its mask, if `mask_used`, is all ones. Returns the ids of output and mask (kNoTensor if unused).
///
/// Unimplemented for a Dropout in training mode that drops anything, and for a mask of symbolic
/// shape. Messages start with the node.
absl::StatusOr<std::vector<TensorId>> AddDropout(const FlatNode& node,
                                                 const std::vector<TensorId>& inputs,
                                                 bool mask_used,
                                                 const std::vector<std::string>& output_names,
                                                 GraphBuilder* builder);

}  // namespace fusion
