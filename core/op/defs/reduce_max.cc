#include "core/op/forms.h"

namespace fusion {

/// maximum over axes; NaN if any element is NaN
OpDef DefineReduceMax() { return ReduceOp("ReduceMax", "max"); }

}  // namespace fusion
