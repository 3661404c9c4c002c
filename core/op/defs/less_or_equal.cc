#include "core/op/forms.h"

namespace fusion {

/// c = a <= b
OpDef DefineLessOrEqual() {
  OpDef def = BinaryOp("LessOrEqual", ScalarOp::kLe);
  def.min_opset = 12;
  return def;
}

}  // namespace fusion
