#include "core/op/indexed/scatter.h"

namespace fusion {

/// What ScatterElements was called before opset 11.
OpDef DefineScatter() { return ScatterElementsOp("Scatter", 9, 10); }

}  // namespace fusion
