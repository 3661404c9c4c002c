#include "core/op/forms.h"

namespace fusion {

/// c = a xor b, bit by bit
OpDef DefineBitwiseXor() {
  OpDef def = BinaryOp("BitwiseXor", ScalarOp::kBitXor);
  def.min_opset = 18;
  return def;
}

}  // namespace fusion
