#include "core/op/forms.h"

namespace fusion {

/// c = a and b
OpDef DefineAnd() { return BinaryOp("And", ScalarOp::kAnd); }

}  // namespace fusion
