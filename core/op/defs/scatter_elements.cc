#include "core/op/indexed/scatter.h"

namespace fusion {

/// See ScatterElementsOp.
OpDef DefineScatterElements() { return ScatterElementsOp("ScatterElements", 11, kNewestOpset); }

}  // namespace fusion
