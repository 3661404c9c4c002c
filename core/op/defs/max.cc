#include "core/op/forms.h"

namespace fusion {

/// y = the largest input; NaN if any is NaN
OpDef DefineMax() { return VariadicOp("Max", ScalarOp::kMax); }

}  // namespace fusion
