#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/op/repeat.h"

namespace fusion {

/// How many passes a Loop makes, of which there is a first one: until the condition, output 0 of
/// `body`, does not hold, but at most `most`.
///
/// Input 0 of the body is the number of the pass, then come `carried` ones, whose next values are
/// the outputs 1, 2, ..., then what stays the same. `given[i]` is what input i begins with, null if
/// nobody knows. nullopt if the condition looks at such an input, however indirectly, or holds for
/// so long that it is not worth to be followed: for more than `points` iteration points, from which
/// what it took is taken. Any thread.
std::optional<int64_t> FollowedPasses(const Repeat& body,
                                      const std::vector<const HostTensor*>& given, size_t carried,
                                      int64_t most, double* points);

/// Iteration points that following the conditions of all Loops of a model may cost.
inline constexpr double kMaxFollowPoints = 1 << 20;

}  // namespace fusion
