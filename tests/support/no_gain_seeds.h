#pragma once

#include <cstdint>
#include <vector>

namespace fusion {

/// Seeds of RandomGraph that make graphs in which some pairs of groups gain nothing from joining,
/// on the CPU that planner tests plan for.
inline const std::vector<uint64_t> kNoGainSeeds = {328, 474, 718};

}  // namespace fusion
