#pragma once

#include <cstdint>
#include <vector>

#include "core/bundle/plan.h"

namespace fusion {

/// For each launch of the plan, the part (0..1) of the bytes of its tensors that a cache of `bytes`
/// still holds from earlier launches, when runs follow each other. By reuse distance: the cache
/// holds a tensor if the tensor fits together with all bytes touched since its last use. If they do
/// not fit, it holds the part that has room. Source: R. L. Mattson et al., "Evaluation Techniques
/// for Storage Hierarchies", IBM Systems Journal 9 (1970). Tensors that begin at one place of the
/// arena are the same memory; other overlaps are not seen.
/// All 0 if the plan has loops, whose passes are not told apart, or
/// symbols. Pure; O(launches * tensors * kMostHeldTensors).
std::vector<double> CachedShares(const Plan& plan, int64_t bytes);
/// Tensors that are remembered; an older one is not held.
inline constexpr size_t kMostHeldTensors = 256;

}  // namespace fusion
