#include "core/op/forms.h"

namespace fusion {

/// product over axes
OpDef DefineReduceProd() { return ReduceOp("ReduceProd", "prod"); }

}  // namespace fusion
