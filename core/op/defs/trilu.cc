#include "core/op/forms.h"

namespace fusion {

/// y[.., i, j] = x[.., i, j] where j - i >= k (upper) or j - i <= k (lower), else 0
OpDef DefineTrilu() {
  return {.name = "Trilu",
          .params = {{.name = "upper", .kind = ParamSpec::kInt},
                     {.name = "k", .kind = ParamSpec::kInt, .onnx_input = 1, .any_integer = true}},
          .min_opset = 14,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 2));
            int rank = call.shape(0).rank();
            bool upper = call.attrs().Int("upper", 1) != 0;
            return ElementwiseBody(call, [&](const std::vector<Expr>& in) {
              // j - i wraps for no extent that fits in memory, so k is compared as it is.
              Expr diagonal = Expr::Axis(rank - 1) - Expr::Axis(rank - 2);
              Expr k = Expr::ConstInt(DType::kI64, call.attrs().Int("k", 0));
              Expr keep = Expr::Binary(upper ? ScalarOp::kGe : ScalarOp::kLe, diagonal, k);
              return Expr::Select(keep, in[0], Expr::Const(in[0].type(), 0));
            });
          }};
}

}  // namespace fusion
