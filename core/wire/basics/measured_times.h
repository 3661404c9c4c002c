#pragma once

#include <cstddef>

#include "core/base/status.h"
#include "core/bundle/measured/measurements.h"

namespace fusion::v1 {
class StoredLatencies;
}  // namespace fusion::v1

namespace fusion {

/// Leaves `launch` of `out` alone.
void EncodeTimes(const MeasuredTimes& times, v1::StoredLatencies* out);
/// InvalidArgument, naming the field, for more than `max_samples` samples, fewer calls than
/// samples, and samples that are no times.
absl::StatusOr<MeasuredTimes> DecodeTimes(const v1::StoredLatencies& wire, size_t max_samples);

}  // namespace fusion
