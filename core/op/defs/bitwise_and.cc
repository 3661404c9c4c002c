#include "core/op/forms.h"

namespace fusion {

/// c = a and b, bit by bit
OpDef DefineBitwiseAnd() {
  OpDef def = BinaryOp("BitwiseAnd", ScalarOp::kBitAnd);
  def.min_opset = 18;
  return def;
}

}  // namespace fusion
