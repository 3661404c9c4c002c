#include "core/op/forms.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {

namespace {

// ONNX says the type as a number of its TensorProto enumeration; ours is a name.
absl::Status NormaliseEyeLike(OnnxCall& call) {
  const auto* code = call.attrs.Find<int64_t>("dtype");
  if (code == nullptr) return absl::OkStatus();
  auto dtype = DTypeFromOnnx(*code);
  if (!dtype)
    return Unimplemented("identity of element type ", OnnxTypeName(*code), " is not supported");
  call.attrs.Set("dtype", std::string(DTypeName(*dtype)));
  return absl::OkStatus();
}

}  // namespace

/// y[i, j] = 1 where j - i is k, else 0, of x's shape and of `dtype`, if not given x's
OpDef DefineEyeLike() {
  return {.name = "EyeLike",
          .params = {{.name = "dtype", .kind = ParamSpec::kString},
                     {.name = "k", .kind = ParamSpec::kInt, .any_integer = true}},
          .min_opset = 9,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            if (call.shape(0).rank() != 2) {
              return InvalidArgument("input 0 is ", call.in(0).ToString(), ", expected rank 2");
            }
            DType type = call.dtype(0);
            if (const auto* name = call.attrs().Find<std::string>("dtype")) {
              auto given = ParseDType(*name);
              if (!given) return InvalidArgument("attribute \"dtype\" is no element type");
              type = *given;
            }
            LoopBody body;
            body.axes = NumberedAxes(call.shape(0).dims());
            body.write = {IndexExpr::Axis(0), IndexExpr::Axis(1)};
            body.reads.resize(1);
            body.reads[0].index = body.write;
            Expr k = Expr::ConstInt(DType::kI64, call.attrs().Int("k", 0));
            Expr one = Expr::Binary(ScalarOp::kEq, Expr::Axis(1) - Expr::Axis(0), k);
            body.value = Expr::Cast(one, type);
            return body;
          },
          .normalise = NormaliseEyeLike};
}

}  // namespace fusion
