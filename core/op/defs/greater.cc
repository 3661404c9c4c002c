#include "core/op/forms.h"

namespace fusion {

/// c = a > b
OpDef DefineGreater() { return BinaryOp("Greater", ScalarOp::kGt); }

}  // namespace fusion
