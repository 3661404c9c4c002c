#pragma once

#include <string_view>
#include <vector>

#include "core/op/indexed/trees.h"

namespace fusion {

/// Trees as ai.onnx.ml has them before opset 5: lists of nodes, each named by its tree and a
/// number, and lists of what leaves give, whose attributes begin with `leaf`: "target" or "class".

std::vector<ParamSpec> NamedTreeParams(std::string_view leaf);
/// `targets`: how many there are. InvalidArgument for lists that do not fit together.
absl::StatusOr<TreeEnsemble> NamedTrees(const AttrMap& attrs, std::string_view leaf,
                                        int64_t targets);

}  // namespace fusion
