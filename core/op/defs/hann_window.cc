#include "core/op/indexed/signal.h"

namespace fusion {

/// y[i] = 0.5 - 0.5 cos(2 pi i / n)
OpDef DefineHannWindow() { return CosineWindow("HannWindow", 0.5, 0.5, 0); }

}  // namespace fusion
