#include "core/op/forms.h"

namespace fusion {

/// y = ln x
OpDef DefineLog() { return UnaryOp("Log", ScalarOp::kLog); }

}  // namespace fusion
