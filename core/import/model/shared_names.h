#pragma once

#include <vector>

#include "core/graph/build/builder.h"

namespace fusion {

/// Declares the shared buffers that a caller requested. Call it after inputs and outputs are
/// marked. The shared dim is the one in which the two shapes differ. InvalidArgument, naming entry,
/// input and output, if a name does not exist or the shapes do not differ in exactly one dim.
absl::Status ShareByName(const std::vector<SharedNames>& wanted, GraphBuilder* builder);

/// Declares the requested strides; call it after ShareByName. InvalidArgument, naming entry and
/// tensor, if the name is no input or output or the strides do not fit (GraphBuilder::BindStrides).
absl::Status BindByName(const std::vector<NamedStrides>& wanted, GraphBuilder* builder);

}  // namespace fusion
