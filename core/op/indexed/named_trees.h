#pragma once

#include <string_view>
#include <vector>

#include "core/op/indexed/trees.h"

namespace fusion {

/// Trees in the format of ai.onnx.ml before opset 5: attributes with lists of nodes, each
/// identified by tree id and node id, and with lists of the weights of leaves. The latter have the
/// prefix `leaf`: "target" or "class".

/// These attributes; without "aggregate_function" and the number of targets.
std::vector<ParamSpec> NamedTreeParams(std::string_view leaf);
/// Reads these attributes, "aggregate_function" and "post_transform". `targets` is the number of
/// targets. InvalidArgument if the lists do not fit together.
absl::StatusOr<TreeEnsemble> NamedTrees(const AttrMap& attrs, std::string_view leaf,
                                        int64_t targets);

}  // namespace fusion
