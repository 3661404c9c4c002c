#include "core/op/forms.h"

namespace fusion {

/// sum over axes
OpDef DefineReduceSum() { return ReduceOp("ReduceSum", "sum"); }

}  // namespace fusion
