#pragma once

#include <string_view>

#include "core/graph/graph.h"

namespace fusion {

/// The canonical graph of the plan with this full key, for drawing it. It has no names, and large
/// constants, of which a key has the digest only, are weights in it. FailedPrecondition, with the
/// reason, if the key does not hold it.
absl::StatusOr<Graph> GraphOfKey(std::string_view full_key);

}  // namespace fusion
