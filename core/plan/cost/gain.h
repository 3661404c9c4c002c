#pragma once

#include <string>

#include "core/base/refusal.h"
#include "core/plan/cost/evaluator.h"

namespace fusion {

/// A change of groups must gain more than this, in microseconds: less is noise of the model.
inline constexpr double kMinGainUs = 0.05;

/// With high compute pressure only groups this much faster than their nodes are formed.
inline constexpr double kPressureSpeedup = 1.5;

/// Why one kernel is not worth having in the place of two; empty if it is. As rules weigh the
/// times.
Refusal WithoutGain(const GroupVerdict& first, const GroupVerdict& second,
                    const GroupVerdict& together);

/// To the nearest of 1/`digits`.
double Rounded(double value, double digits);
/// "3.20 us".
std::string MicrosecondsText(double us);
/// "12.31 us together, 12.04 us apart".
std::string TimesText(double together_us, double apart_us);
/// Why high compute pressure forbids a group of such a speed-up.
std::string SpeedupText(double speedup);

}  // namespace fusion
