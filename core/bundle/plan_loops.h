#pragma once

#include "core/bundle/plan.h"

namespace fusion {

/// Part of Verify: checks that loops are properly nested, that each place belongs to one loop and
/// is used only by its launches, and that the tensors of loops have the required types and sizes
/// for these values of the symbols (`units`: value / multiple). Tensors, their sizes and launches
/// must have been checked before. InvalidArgument, naming the loop.
absl::Status CheckLoops(const Plan& plan, const std::vector<int64_t>& units);

}  // namespace fusion
