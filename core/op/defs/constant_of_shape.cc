#include "core/op/forms.h"

namespace fusion {

/// y = a tensor of `shape` filled with the one element of `value` (default 0.0f)
OpDef DefineConstantOfShape() {
  return {.name = "ConstantOfShape",
          .min_inputs = 0,
          .max_inputs = 0,
          .params = {{.name = "shape",
                      .kind = ParamSpec::kInts,
                      .onnx_input = 0,
                      .required = true,
                      .any_integer = true},
                     {.name = "value", .kind = ParamSpec::kTensor}},
          .min_opset = 9,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const auto& dims = *call.attrs().Find<std::vector<int64_t>>("shape");
            RETURN_IF_ERROR(CheckedNumElements(dims, 8).status());
            LoopBody body;
            body.axes = NumberedAxes(Shape(dims).dims());
            for (size_t d = 0; d < dims.size(); ++d) {
              body.write.push_back(IndexExpr::Axis(static_cast<int>(d)));
            }
            body.value = Expr::Const(DType::kF32, 0);
            if (const auto* value = call.attrs().Find<std::shared_ptr<const HostTensor>>("value")) {
              const HostTensor& t = **value;
              if (t.elements() != 1) {
                return InvalidArgument("value has ", t.elements(), " elements, expected 1");
              }
              body.value = IsFloat(t.dtype()) ? Expr::Const(t.dtype(), t.GetDouble(0))
                                              : Expr::ConstInt(t.dtype(), t.GetInt(0));
            }
            return body;
          }};
}

}  // namespace fusion
