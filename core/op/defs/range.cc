#include <cmath>
#include "core/op/forms.h"

namespace fusion {

/// y = start, start + delta, ... below (or above) limit
OpDef DefineRange() {
  using Tensor = std::shared_ptr<const HostTensor>;
  return {.name = "Range",
          .min_inputs = 0,
          .max_inputs = 0,
          .params = {{.name = "start", .kind = ParamSpec::kTensor, .onnx_input = 0, .required = true},
                     {.name = "limit", .kind = ParamSpec::kTensor, .onnx_input = 1, .required = true},
                     {.name = "delta", .kind = ParamSpec::kTensor, .onnx_input = 2, .required = true}},
          .min_opset = 11,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const HostTensor& start = **call.attrs().Find<Tensor>("start");
            const HostTensor& limit = **call.attrs().Find<Tensor>("limit");
            const HostTensor& delta = **call.attrs().Find<Tensor>("delta");
            DType type = start.dtype();
            for (const HostTensor* t : {&start, &limit, &delta}) {
              if (t->elements() != 1 || t->dtype() != type || type == DType::kBool) {
                return InvalidArgument("start, limit and delta must be scalars of one numeric type");
              }
            }
            double step = delta.GetDouble(0);
            if (step == 0 || std::isnan(step)) return InvalidArgument("delta is ", step);
            double count = std::ceil((limit.GetDouble(0) - start.GetDouble(0)) / step);
            if (!(count < 0x1p40)) return InvalidArgument("a range of ", count, " elements");
            LoopBody body;
            body.axes = {{"i", Dim(count > 0 ? static_cast<int64_t>(count) : 0)}};
            body.write = {IndexExpr::Axis(0)};
            auto scalar = [type](const HostTensor& t) {
              return IsFloat(type) ? Expr::Const(type, t.GetDouble(0))
                                   : Expr::ConstInt(type, t.GetInt(0));
            };
            body.value = scalar(start) + Expr::Cast(Expr::Axis(0), type) * scalar(delta);
            return body;
          }};
}

}  // namespace fusion
