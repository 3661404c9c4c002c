#pragma once

#include <vector>

#include "core/graph/build/builder.h"

namespace fusion {

/// Declares the shared buffers that a caller asks for, once inputs and outputs are marked. The dim
/// is the one in which the two shapes differ. InvalidArgument, naming the entry, input and output,
/// for what the graph does not have and for shapes that do not differ in one dim.
absl::Status ShareByName(const std::vector<SharedNames>& wanted, GraphBuilder* builder);

/// Says, after that, where inputs and outputs lie. InvalidArgument, naming the entry and the
/// tensor, for what is neither and for strides that do not fit it (GraphBuilder::BindStrides).
absl::Status BindByName(const std::vector<NamedStrides>& wanted, GraphBuilder* builder);

}  // namespace fusion
