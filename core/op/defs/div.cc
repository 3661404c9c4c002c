#include "core/op/forms.h"

namespace fusion {

/// c = a / b; integers truncate
OpDef DefineDiv() { return BinaryOp("Div", ScalarOp::kDiv); }

}  // namespace fusion
