#pragma once

#include "core/op/op_def.h"

namespace fusion {

/// Common steps of LpPool and GlobalLpPool: y = (sum of |x|^p)^(1/p) over a set of elements.

/// Attribute "p" (absent: 2). InvalidArgument if it is below 1 or input 0 is not of a float type.
absl::StatusOr<int64_t> LpOrder(const OpCall& call);
/// |x|^p
absl::StatusOr<Decomposition::Value> LpPowers(Decomposition& d, Decomposition::Value x, int64_t p);
/// sum^(1/p)
absl::StatusOr<Decomposition::Value> LpRoot(Decomposition& d, Decomposition::Value sum, int64_t p);

}  // namespace fusion
