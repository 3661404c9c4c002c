#pragma once

#include <vector>

#include "core/op/forms/resampling.h"

namespace fusion {

/// Input 0 with `dims` resized as kTfCropAndResize does, for a region that is known only at run
/// time. `roi`, the value of input 1 of the call, is a list of 2 * dims.size() floats: the begins
/// of all `dims`, then the ends, in units of the whole dim (ResampledDim::roi_begin). Unimplemented
/// for antialiasing, for an empty dim and beyond kMaxResampleEntries result elements along a dim.
absl::StatusOr<Decomposition::Value> CroppedAtRun(Decomposition& d, const Resampling& how,
                                                  const std::vector<ResampledDim>& dims,
                                                  Decomposition::Value roi);

}  // namespace fusion
