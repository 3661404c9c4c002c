#include "core/op/forms.h"

namespace fusion {

/// y = |x|
OpDef DefineAbs() { return UnaryOp("Abs", ScalarOp::kAbs); }

}  // namespace fusion
