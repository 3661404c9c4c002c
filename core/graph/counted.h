#pragma once

#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace fusion {

/// The counted dim of each output of a call. `inputs[i]` is that of input i.
///
/// Elements of a counted tensor beyond the count are arbitrary but defined. An op may compute on
/// them if each element of its output depends only on elements at its own coordinate along that
/// dim. The output then has the same count.
///
/// Unimplemented, naming input and dim, if the op mixes elements along a counted dim (a sum, a
/// slice, a reshape), needs its extent (Shape), or has inputs with different counts. Also if an
/// input without a count runs along the same dim, because a run may find that the lengths differ.
/// Pure.
absl::StatusOr<std::vector<std::optional<CountedDim>>> InheritCounts(
    const OpCall& call, const std::vector<std::optional<CountedDim>>& inputs);

}  // namespace fusion
