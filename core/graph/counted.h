#pragma once

#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace fusion {

/// The counted dims of a call's outputs. Behind the last element that there is, elements of a
/// counted tensor are arbitrary but defined, so an op may go on with them as long as each element
/// of its output comes from elements at its own coordinate along that dim: then the same elements
/// count. `inputs[i]` belongs to input i. Unimplemented, naming input and dim, where the op mixes
/// elements along a counted dim (a sum, a slice, a reshape), needs its extent (Shape), or has
/// inputs with different ones, or beside it one along the same dim whose extent
/// is known: a run may find that they do not fit. Pure.
absl::StatusOr<std::vector<std::optional<CountedDim>>> InheritCounts(
    const OpCall& call, const std::vector<std::optional<CountedDim>>& inputs);

}  // namespace fusion
