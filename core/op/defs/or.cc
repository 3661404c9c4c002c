#include "core/op/forms.h"

namespace fusion {

/// c = a or b
OpDef DefineOr() { return BinaryOp("Or", ScalarOp::kOr); }

}  // namespace fusion
