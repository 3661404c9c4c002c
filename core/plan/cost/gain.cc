#include "core/plan/cost/gain.h"

#include <cmath>

#include "core/base/text/text.h"

namespace fusion {

Refusal WithoutGain(const GroupVerdict& first, const GroupVerdict& second,
                    const GroupVerdict& together) {
  const double apart_us = first.estimate.time_us + second.estimate.time_us;
  const double together_us = together.estimate.time_us;
  const double weighed_us = first.weighed_us() + second.weighed_us();
  if (weighed_us - together.weighed_us() > kMinGainUs) return {};
  std::string times = TimesText(together_us, apart_us);
  if (apart_us - together_us <= kMinGainUs) return Refuse(RefusalCode::kNoGain, times);
  return Refuse(RefusalCode::kBias, times, "; rules count them as ",
                TimesText(together.weighed_us(), weighed_us));
}

double Rounded(double value, double digits) { return std::round(value * digits) / digits; }

std::string MicrosecondsText(double us) { return StrCat(Rounded(us, 100), " us"); }

std::string TimesText(double together_us, double apart_us) {
  return StrCat(MicrosecondsText(together_us), " together, ", MicrosecondsText(apart_us), " apart");
}

std::string SpeedupText(double speedup) {
  return StrCat("speed-up ", Rounded(speedup, 1000), " is below ", kPressureSpeedup,
                " and compute pressure is high");
}

}  // namespace fusion
