#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = round(x / scale) + zero point in u8; scale and zero point, outputs 1 and 2, are such that
/// 0..255 stands for all of x and for 0
OpDef DefineDynamicQuantizeLinear() {
  return {.name = "DynamicQuantizeLinear",
          .min_opset = 11,
          .max_outputs = 3,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const DType type = call.dtype(0);
            if (type != DType::kF32) {
              return InvalidArgument("input 0 is ", DTypeName(type), ", expected f32");
            }
            const AttrMap all = {{"keepdims", int64_t{0}}};
            const auto zero = d.Scalar(type, 0);
            ASSIGN_OR_RETURN(auto high, d.Apply("ReduceMax", {d.in(0)}, all));
            ASSIGN_OR_RETURN(high, d.Apply("Max", {high, zero}));
            ASSIGN_OR_RETURN(auto low, d.Apply("ReduceMin", {d.in(0)}, all));
            ASSIGN_OR_RETURN(low, d.Apply("Min", {low, zero}));
            ASSIGN_OR_RETURN(auto span, d.Apply("Sub", {high, low}));
            ASSIGN_OR_RETURN(auto scale, d.Apply("Div", {span, d.Scalar(type, 255)}));
            // Of zeros alone any scale will do.
            ASSIGN_OR_RETURN(auto none, d.Apply("Equal", {scale, zero}));
            ASSIGN_OR_RETURN(scale, d.Apply("Where", {none, d.Scalar(type, 1), scale}));
            ASSIGN_OR_RETURN(auto below, d.Apply("Sub", {zero, low}));
            ASSIGN_OR_RETURN(below, RoundedQuotient(d, below, scale));
            ASSIGN_OR_RETURN(auto zero_point, Quantised(d, below, -1, DType::kU8));
            ASSIGN_OR_RETURN(auto x, RoundedQuotient(d, d.in(0), scale));
            ASSIGN_OR_RETURN(auto y, Quantised(d, x, zero_point, DType::kU8));
            if (call.outputs() > 1) d.SetOutput(1, scale);
            if (call.outputs() > 2) d.SetOutput(2, zero_point);
            return y;
          }};
}

}  // namespace fusion
