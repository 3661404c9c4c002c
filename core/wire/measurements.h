#pragma once

#include <string>
#include <string_view>

#include "core/bundle/measured/measurements.h"

namespace fusion {

/// The measurements of a plan as one string for a store.
std::string EncodeMeasurements(const Digest& plan_key, const PlanMeasurements& measurements);

/// Inverse of EncodeMeasurements for untrusted input. InvalidArgument, naming the field, if
/// something is malformed; DataLoss if the measurements belong to another plan than `plan_key`.
absl::StatusOr<PlanMeasurements> DecodeMeasurements(const Digest& plan_key, std::string_view bytes);

}  // namespace fusion
