#include "core/op/forms.h"

namespace fusion {

/// c = a ^ b; the exponent takes the type of the base
OpDef DefinePow() {
  return {.name = "Pow",
          .min_inputs = 2,
          .max_inputs = 2,
          .min_opset = 7,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            for (int i = 0; i < 2; ++i) {
              if (call.dtype(i) == DType::kBool) {
                return InvalidArgument("input ", i, " is bool, expected a numeric type");
              }
            }
            return ElementwiseBody(call, [](const std::vector<Expr>& in) {
              return Expr::Binary(ScalarOp::kPow, in[0], Expr::Cast(in[1], in[0].type()));
            });
          }};
}

}  // namespace fusion
