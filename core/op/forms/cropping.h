#pragma once

#include <vector>

#include "core/op/forms/resampling.h"

namespace fusion {

/// Input 0 with `dims` resized as kTfCropAndResize does, the part of each that is shown being known
/// to a run only: `roi`, floats [2 n] of which elements position and position + n are begin and end
/// of a dim. Positions are those in `dims`. Unimplemented for antialiasing.
absl::StatusOr<Decomposition::Value> CroppedAtRun(Decomposition& d, const Resampling& how,
                                                  const std::vector<ResampledDim>& dims,
                                                  Decomposition::Value roi);

}  // namespace fusion
