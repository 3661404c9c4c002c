#include "core/op/forms.h"

namespace fusion {

/// c = a == b
OpDef DefineEqual() { return BinaryOp("Equal", ScalarOp::kEq); }

}  // namespace fusion
