#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/op/repeat.h"

namespace fusion {

/// Number of passes of a Loop whose first pass is made: evaluates the condition, output 0 of
/// `body`, until it is false, for at most `most` passes.
///
/// Input 0 of the body is the number of the pass. Then come `carried` inputs, whose next values are
/// outputs 1, 2, ..., then the loop-invariant inputs. `given[i]` is the initial value of input i;
/// null if it is unknown. nullopt if the condition depends, even indirectly, on an unknown input,
/// or if following it costs more than `*points` iteration points. The cost is subtracted from
/// `*points`. Any thread.
std::optional<int64_t> FollowedPasses(const Repeat& body,
                                      const std::vector<const HostTensor*>& given, size_t carried,
                                      int64_t most, double* points);

/// Iteration points for following the conditions of all Loops of a model.
inline constexpr double kMaxFollowPoints = 1 << 20;

}  // namespace fusion
