#pragma once

#include <string_view>

#include "core/graph/graph.h"

namespace fusion {

/// The canonical graph of the plan with this full key, for drawing it. It has no names. A key holds
/// only the digest of a large constant, so large constants are weights in the graph.
/// FailedPrecondition, with the reason, if the key does not hold the graph.
absl::StatusOr<Graph> GraphOfKey(std::string_view full_key);

}  // namespace fusion
