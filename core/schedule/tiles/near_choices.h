#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

/// The neighbours of a choice, for searches that time kernels: choices that an estimate cannot tell
/// from `choice`, so EnumerateChoices leaves them out. Each differs from `choice` in one decision:
/// a dim in twice or half as many blocks, slices of twice or half the length, another register
/// block, rows staged or not, swapped operands; or in two that compensate each other: one dim in
/// more blocks and another one in fewer. All pass CheckChoice; they may have no schedule. No two
/// are equal. Pure; deterministic.
std::vector<Choice> ChoicesNear(const FusionGroup& group, const Choice& choice,
                                const DeviceSpec& device, bool bitwise);

}  // namespace fusion
