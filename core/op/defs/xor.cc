#include "core/op/forms.h"

namespace fusion {

/// c = a xor b
OpDef DefineXor() {
  return {.name = "Xor",
          .min_inputs = 2,
          .max_inputs = 2,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            if (call.dtype(0) != DType::kBool) {
              return InvalidArgument("inputs are ", DTypeName(call.dtype(0)), ", expected bool");
            }
            return ElementwiseBody(call, [](const std::vector<Expr>& in) {
              return Expr::Binary(ScalarOp::kNe, in[0], in[1]);
            });
          },
          .normalise = NormaliseOldBroadcast};
}

}  // namespace fusion
