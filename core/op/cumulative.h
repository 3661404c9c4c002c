#pragma once

#include <string>

#include "core/op/op_def.h"

namespace fusion {

/// Definition of y[i] = x[0] `op` .. `op` x[i] along `axis` (a constant), without x[i] if
/// `exclusive`; from the end with `reverse`. `neutral` is what `op` changes nothing with. In steps
/// that double what is combined, so that no element waits for all others.
OpDef CumulativeOp(std::string name, std::string op, double neutral);

}  // namespace fusion
