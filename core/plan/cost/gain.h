#pragma once

#include <string>

#include "core/base/refusal.h"
#include "core/plan/cost/evaluator.h"

namespace fusion {

/// A change of groups must gain more than this many microseconds. Smaller gains are below the
/// accuracy of the estimates.
inline constexpr double kMinGainUs = 0.05;

/// With high compute pressure a group must be more than this many times as fast as its nodes.
inline constexpr double kPressureSpeedup = 1.5;

/// Why one kernel gains nothing over two, in times as rules weigh them; empty if it gains. All
/// three must have schedules.
Refusal WithoutGain(const GroupVerdict& first, const GroupVerdict& second,
                    const GroupVerdict& together);

/// Rounds to the nearest multiple of 1/`digits`: 100 for two decimals.
double Rounded(double value, double digits);
/// "3.2 us": at most two decimals.
std::string MicrosecondsText(double us);
/// "12.31 us together, 12.04 us apart".
std::string TimesText(double together_us, double apart_us);
/// Why high compute pressure forbids a group with this speed-up.
std::string SpeedupText(double speedup);

}  // namespace fusion
