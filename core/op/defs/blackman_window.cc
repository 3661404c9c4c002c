#include "core/op/indexed/signal.h"

namespace fusion {

/// y[i] = 0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n)
OpDef DefineBlackmanWindow() { return CosineWindow("BlackmanWindow", 0.42, 0.5, 0.08); }

}  // namespace fusion
