#include "core/op/forms.h"

namespace fusion {

/// c = a <= b
OpDef DefineLessOrEqual() { return BinaryOp("LessOrEqual", ScalarOp::kLe); }

}  // namespace fusion
