#include "core/op/forms.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {

namespace {

// ONNX says the type as a number of its TensorProto enumeration; ours is a name.
absl::Status NormaliseCast(OnnxCall& call) {
  const auto* code = call.attrs.Find<int64_t>("to");
  if (code == nullptr && call.attrs.Has("to")) {
    return InvalidArgument("attribute \"to\" is not the number of an element type");
  }
  if (code == nullptr) return absl::OkStatus();
  auto dtype = DTypeFromOnnx(*code);
  if (!dtype)
    return Unimplemented("cast to element type ", OnnxTypeName(*code), " is not supported");
  call.attrs.Set("to", std::string(DTypeName(*dtype)));
  call.attrs.Erase("saturate");
  return absl::OkStatus();
}

}  // namespace

/// y = x rounded to another element type
OpDef DefineCast() {
  return {.name = "Cast",
          .params = {{.name = "to", .kind = ParamSpec::kString, .required = true},
                     {.name = "saturate", .kind = ParamSpec::kInt}},
          .min_opset = 6,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            auto to = ParseDType(*call.attrs().Find<std::string>("to"));
            if (!to) return InvalidArgument("attribute \"to\" is no element type");
            return ElementwiseBody(
                call, [&](const std::vector<Expr>& in) { return Expr::Cast(in[0], *to); });
          },
          .normalise = NormaliseCast};
}

}  // namespace fusion
