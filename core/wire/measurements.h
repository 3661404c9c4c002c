#pragma once

#include <string>
#include <string_view>

#include "core/bundle/measurements.h"

namespace fusion {

/// The measurements of a plan as one string, as stores keep them.
std::string EncodeMeasurements(const Digest& plan_key, const PlanMeasurements& measurements);

/// Inverse of EncodeMeasurements, for bytes that nobody vouches for: InvalidArgument, naming the
/// field, if something is malformed; DataLoss if they are about another plan.
absl::StatusOr<PlanMeasurements> DecodeMeasurements(const Digest& plan_key, std::string_view bytes);

}  // namespace fusion
