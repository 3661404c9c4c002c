#include "core/op/forms.h"

namespace fusion {

/// y = 1 where x is above `threshold`, else 0, in x's type
OpDef DefineMlBinarizer() {
  return {.name = "ai.onnx.ml.Binarizer",
          .params = {{.name = "threshold", .kind = ParamSpec::kFloat}},
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const DType type = call.dtype(0);
            if (type == DType::kBool) return InvalidArgument("input 0 is bool, expected numbers");
            // Integers of 32 bits are compared with the threshold as they are.
            const DType exact = IsFloat(type) ? type : DType::kF64;
            return ElementwiseBody(call, [&](const std::vector<Expr>& in) {
              const Expr threshold = Expr::Const(exact, call.attrs().Float("threshold", 0));
              return Expr::Cast(Expr::Binary(ScalarOp::kGt, Expr::Cast(in[0], exact), threshold),
                                type);
            });
          }};
}

}  // namespace fusion
