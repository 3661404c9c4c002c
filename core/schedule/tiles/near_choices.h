#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

/// Choices that differ from `choice` in one decision, or in two that make up for each other: a dim
/// in twice as many blocks or half as many, one in more and another in fewer, longer or shorter
/// slices, another register block, rows copied or not, the other role for operands. What
/// EnumerateChoices leaves out because an estimate cannot tell it from its neighbour, for who
/// measures. All pass CheckChoice; they may have no schedule. Pure; deterministic; no two are
/// equal.
std::vector<Choice> ChoicesNear(const FusionGroup& group, const Choice& choice,
                                const DeviceSpec& device, bool bitwise);

}  // namespace fusion
