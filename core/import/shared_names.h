#pragma once

#include <vector>

#include "core/graph/builder.h"

namespace fusion {

/// Declares the shared buffers that a caller asks for, once inputs and outputs are marked. The dim
/// is the one in which the two shapes differ. InvalidArgument, naming the entry, input and output,
/// for what the graph does not have and for shapes that do not differ in one dim.
absl::Status ShareByName(const std::vector<SharedNames>& wanted, GraphBuilder* builder);

}  // namespace fusion
