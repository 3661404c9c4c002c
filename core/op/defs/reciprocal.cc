#include "core/op/forms.h"

namespace fusion {

/// y = 1 / x
OpDef DefineReciprocal() { return UnaryOp("Reciprocal", ScalarOp::kReciprocal); }

}  // namespace fusion
