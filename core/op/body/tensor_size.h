#pragma once

#include "core/base/status.h"
#include "core/op/body/loop_body.h"

namespace fusion {

/// InvalidArgument for a tensor of more than kMaxTensorRank dims or kMaxTensorBytes; a symbol
/// counts as its smallest useful value, so that sums and products of its extents fit in 64 bits as
/// well.
absl::Status CheckTensorSize(const TensorType& type);

/// The same of what a step of a node gives: the message names the step.
absl::Status CheckStepSize(std::string_view step, const TensorType& type);

}  // namespace fusion
