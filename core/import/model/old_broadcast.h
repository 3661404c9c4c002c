#pragma once

#include <vector>

#include "core/graph/build/builder.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// Before opset 7 the dims of the second operand of a binary op stood where attribute "axis" said,
/// if "broadcast" was 1: gives it dims of extent 1 behind, so that it broadcasts as since then. The
/// slope of a PRelu stood along the channels. Other nodes keep their inputs.
///
/// InvalidArgument, naming the node, where the operand does not fit at its axis, or differs in
/// shape and may not broadcast.
absl::Status AlignOldOperand(const FlatNode& node, std::vector<TensorId>* inputs,
                             GraphBuilder* builder);

}  // namespace fusion
