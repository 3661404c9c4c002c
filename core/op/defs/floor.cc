#include "core/op/forms.h"

namespace fusion {

/// y = largest integer <= x
OpDef DefineFloor() { return UnaryOp("Floor", ScalarOp::kFloor); }

}  // namespace fusion
