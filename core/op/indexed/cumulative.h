#pragma once

#include <string>

#include "core/op/op_def.h"

namespace fusion {

/// Definition of y[i] = x[0] op .. op x[i] along `axis` (a constant), without x[i] if `exclusive`;
/// from the end with `reverse`. `monoid`: "sum" or "prod". A running fold
/// (core/op/indexed/opaque.h).
OpDef CumulativeOp(std::string name, std::string monoid);

}  // namespace fusion
