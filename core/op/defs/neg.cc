#include "core/op/forms.h"

namespace fusion {

/// y = -x
OpDef DefineNeg() { return UnaryOp("Neg", ScalarOp::kNeg); }

}  // namespace fusion
