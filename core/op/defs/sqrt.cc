#include "core/op/forms.h"

namespace fusion {

/// y = square root of x
OpDef DefineSqrt() { return UnaryOp("Sqrt", ScalarOp::kSqrt); }

}  // namespace fusion
