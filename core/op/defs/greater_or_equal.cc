#include "core/op/forms.h"

namespace fusion {

/// c = a >= b
OpDef DefineGreaterOrEqual() {
  OpDef def = BinaryOp("GreaterOrEqual", ScalarOp::kGe);
  def.min_opset = 12;
  return def;
}

}  // namespace fusion
