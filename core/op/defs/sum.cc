#include "core/op/forms.h"

namespace fusion {

/// y = the sum of the inputs
OpDef DefineSum() { return VariadicOp("Sum", ScalarOp::kAdd); }

}  // namespace fusion
