#pragma once

#include "core/base/status.h"
#include "core/op/body/loop_body.h"

namespace fusion {

/// InvalidArgument for a tensor of more than kMaxTensorRank dims or kMaxTensorBytes. A symbol
/// counts as 1, and coefficients by their magnitude: this bounds the coefficients of sums and
/// products of the extents, which then fit in 64 bits.
absl::Status CheckTensorSize(const TensorType& type);

/// The same for the output of a step of a composite; the message names the step.
absl::Status CheckStepSize(std::string_view step, const TensorType& type);

}  // namespace fusion
