#include "core/op/forms.h"

namespace fusion {

/// c = a or b, bit by bit
OpDef DefineBitwiseOr() {
  OpDef def = BinaryOp("BitwiseOr", ScalarOp::kBitOr);
  def.min_opset = 18;
  return def;
}

}  // namespace fusion
