#pragma once

#include <string>

#include "core/op/op_def.h"

namespace fusion {

/// Definition of y[i] = x[0] op .. op x[i] along "axis" (a constant); without x[i] if "exclusive",
/// from the end if "reverse". `monoid`: "sum" or "prod". Expands to a RunningFold
/// (core/op/indexed/opaque.h).
OpDef CumulativeOp(std::string name, std::string monoid);

}  // namespace fusion
