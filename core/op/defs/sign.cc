#include "core/op/forms.h"

namespace fusion {

/// y = -1, 0 or 1
OpDef DefineSign() { return UnaryOp("Sign", ScalarOp::kSign); }

}  // namespace fusion
