#pragma once

#include "core/bundle/plan.h"

namespace fusion {

/// Part of Verify: checks that the loops of a plan lie within each other, that every place is given
/// by one of them and used in its launches alone, and that all they name has the type and the bytes
/// that it takes where the symbols have these values. Tensors, their sizes and launches are sound
/// already.
absl::Status CheckLoops(const Plan& plan, const std::vector<int64_t>& units);

}  // namespace fusion
