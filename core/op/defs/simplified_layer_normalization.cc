#include "core/op/forms.h"

namespace fusion {

/// y = x / sqrt(mean x^2 + epsilon) * scale, the mean over the axes from `axis` on; output 1, if
/// named, is 1 / sqrt(mean x^2 + epsilon). An op of ONNX Runtime that it writes in ONNX's domain.
OpDef DefineSimplifiedLayerNormalization() {
  return {.name = "SimplifiedLayerNormalization",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "epsilon", .kind = ParamSpec::kFloat},
                     {.name = "stash_type", .kind = ParamSpec::kInt}},
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckFloat(call, 0));
            RETURN_IF_ERROR(CheckFloat(call, 1));
            const int64_t stash = call.attrs().Int("stash_type", 1);
            const bool wide = call.dtype(0) == DType::kF64 && (stash == 11 || stash == 1);
            if (stash != 1 && !wide) {
              return Unimplemented("attribute \"stash_type\" is ", stash,
                                   "; supported: 1 (statistics in f32) and, for f64, 11");
            }
            const int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -1), rank));
            std::vector<int64_t> axes;
            for (int i = axis; i < rank; ++i) axes.push_back(i);
            // Statistics are taken in f32 at least: the f16 value of an exporter's epsilon is 0.
            const DType type = wide ? DType::kF64 : DType::kF32;
            ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), type));
            ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {x, x}));
            ASSIGN_OR_RETURN(auto mean, d.Apply("ReduceMean", {square}, {{"axes", axes}}));
            const double epsilon = call.attrs().Float("epsilon", 1e-5);
            ASSIGN_OR_RETURN(mean, d.Apply("Add", {mean, d.Scalar(type, epsilon)}));
            ASSIGN_OR_RETURN(auto root, d.Apply("Sqrt", {mean}));
            if (call.outputs() > 1) {
              ASSIGN_OR_RETURN(auto inverse, d.Apply("Reciprocal", {root}));
              d.SetOutput(1, inverse);
            }
            ASSIGN_OR_RETURN(auto y, d.Apply("Div", {x, root}));
            ASSIGN_OR_RETURN(y, CastTo(d, y, call.dtype(1)));
            ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, d.in(1)}));
            if (d.type(y).shape != call.shape(0)) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(),
                                     ", expected a scale that broadcasts to input 0 ",
                                     call.in(0).ToString());
            }
            return y;
          }};
}

}  // namespace fusion
