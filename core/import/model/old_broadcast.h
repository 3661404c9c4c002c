#pragma once

#include <vector>

#include "core/graph/build/builder.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// Converts broadcasting of opsets before 7, where attribute "axis" (with "broadcast" = 1) places
/// the dims of the second operand of a binary op. Appends dims of extent 1, so that the operand
/// broadcasts by today's rules. The slope of an old PRelu is aligned with the channels likewise.
/// Other nodes keep their inputs.
///
/// InvalidArgument, naming the node, if the operand does not fit at its axis, or if the shapes
/// differ without "broadcast".
absl::Status AlignOldOperand(const FlatNode& node, std::vector<TensorId>* inputs,
                             GraphBuilder* builder);

}  // namespace fusion
