#include "core/op/forms.h"

namespace fusion {

/// y = not x
OpDef DefineNot() {
  return {.name = "Not", .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            if (call.dtype(0) != DType::kBool) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)), ", expected bool");
            }
            return ElementwiseBody(call, [](const std::vector<Expr>& in) {
              return Expr::Unary(ScalarOp::kNot, in[0]);
            });
          }};
}

}  // namespace fusion
