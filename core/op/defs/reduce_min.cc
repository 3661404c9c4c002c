#include "core/op/forms.h"

namespace fusion {

/// minimum over axes; NaN if any element is NaN
OpDef DefineReduceMin() { return ReduceOp("ReduceMin", "min"); }

}  // namespace fusion
