#include "core/op/forms.h"

namespace fusion {

/// y = not x, bit by bit
OpDef DefineBitwiseNot() {
  return {.name = "BitwiseNot",
          .min_opset = 18,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            if (!IsInteger(call.dtype(0))) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected an integer type");
            }
            return ElementwiseBody(call, [](const std::vector<Expr>& in) {
              return Expr::Binary(ScalarOp::kBitXor, in[0], Expr::ConstInt(in[0].type(), -1));
            });
          }};
}

}  // namespace fusion
