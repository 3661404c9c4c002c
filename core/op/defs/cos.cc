#include "core/op/forms.h"

namespace fusion {

/// y = cos x
OpDef DefineCos() { return UnaryOp("Cos", ScalarOp::kCos); }

}  // namespace fusion
