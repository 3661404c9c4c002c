#include "core/op/forms.h"

namespace fusion {

/// y = e^x
OpDef DefineExp() { return UnaryOp("Exp", ScalarOp::kExp); }

}  // namespace fusion
