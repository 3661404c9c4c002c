#pragma once

#include <vector>

#include "core/plan/evaluator.h"

namespace fusion {

// The changes that would turn a verdict, smallest first. Pure.

/// "3.20 us".
std::string MicrosecondsText(double us);

/// What makes two kernels that are as fast as one, or faster, worth joining: a dearer launch, a
/// slower or faster memory, or a faster kernel. From the terms of the estimates: with them the gain
/// would be just above kMinGainUs, if each kernel stays cut as it is.
std::vector<PlanFlip> GainFlips(const GroupVerdict& first, const GroupVerdict& second,
                                const GroupVerdict& together, const DeviceSpec& device);

/// What gives a group a place on chip.
std::vector<PlanFlip> FitFlips(const FitProbe& probe);

/// How much longer one kernel may take before several are as fast.
std::vector<PlanFlip> SlackFlips(double together_us, double apart_us);

}  // namespace fusion
