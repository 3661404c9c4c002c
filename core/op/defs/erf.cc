#include "core/op/forms.h"

namespace fusion {

/// y = erf(x), the error function
OpDef DefineErf() { return UnaryOp("Erf", ScalarOp::kErf); }

}  // namespace fusion
