#include "core/op/forms.h"

namespace fusion {

/// y = max(x, 0); NaN stays NaN
OpDef DefineRelu() {
  return {.name = "Relu", .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            if (call.dtype(0) == DType::kBool) {
              return InvalidArgument("input 0 is bool, expected a numeric type");
            }
            return ElementwiseBody(call, [](const std::vector<Expr>& in) {
              return Expr::Binary(ScalarOp::kMax, in[0], Expr::Const(in[0].type(), 0));
            });
          }};
}

}  // namespace fusion
