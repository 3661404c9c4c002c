#include "core/op/forms.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {

/// y = x with its bits taken for those of another type of the same width; those of bool, a byte
/// that is 0 or 1, for an integer's
OpDef DefineBitCast() {
  return {.name = "BitCast",
          .params = {{.name = "to", .kind = ParamSpec::kInt, .required = true}},
          .min_opset = 26,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const DType from = call.dtype(0);
            const int64_t code = call.attrs().Int("to", 0);
            const std::optional<DType> to = DTypeFromOnnx(code);
            if (!to)
              return Unimplemented("attribute \"to\" is element type ", OnnxTypeName(code),
                                   ", which is not supported");
            if (DTypeBits(*to) != DTypeBits(from)) {
              return InvalidArgument("attribute \"to\" is ", DTypeName(*to), ", input 0 is ",
                                     DTypeName(from), "; expected types of one width");
            }
            const bool from_bool = from == DType::kBool && IsInteger(*to);
            if (*to != from && !CanBitCast(from, *to) && !from_bool) {
              return Unimplemented("the bits of ", DTypeName(from), " as ", DTypeName(*to),
                                   "; of bool, supported as those of integers");
            }
            return ElementwiseBody(call, [&](const std::vector<Expr>& in) {
              return from == DType::kBool ? Expr::Cast(in[0], *to) : Expr::BitCast(in[0], *to);
            });
          }};
}

}  // namespace fusion
