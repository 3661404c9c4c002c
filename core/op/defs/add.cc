#include "core/op/forms.h"

namespace fusion {

/// c = a + b
OpDef DefineAdd() { return BinaryOp("Add", ScalarOp::kAdd); }

}  // namespace fusion
