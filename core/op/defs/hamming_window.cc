#include "core/op/indexed/signal.h"

namespace fusion {

/// y[i] = 25/46 - 21/46 cos(2 pi i / n)
OpDef DefineHammingWindow() { return CosineWindow("HammingWindow", 25.0 / 46, 21.0 / 46, 0); }

}  // namespace fusion
