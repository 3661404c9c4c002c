#include "core/op/forms.h"

namespace fusion {

/// c = a >= b
OpDef DefineGreaterOrEqual() { return BinaryOp("GreaterOrEqual", ScalarOp::kGe); }

}  // namespace fusion
