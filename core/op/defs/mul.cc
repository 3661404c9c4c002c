#include "core/op/forms.h"

namespace fusion {

/// c = a * b
OpDef DefineMul() { return BinaryOp("Mul", ScalarOp::kMul); }

}  // namespace fusion
