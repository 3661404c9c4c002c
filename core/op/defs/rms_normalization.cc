#include "core/op/forms.h"

namespace fusion {

/// y = x / sqrt(mean of x^2 + epsilon) * scale, the mean over the axes from `axis` on
OpDef DefineRmsNormalization() {
  return {.name = "RMSNormalization",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "epsilon", .kind = ParamSpec::kFloat},
                     {.name = "stash_type", .kind = ParamSpec::kInt}},
          .min_opset = 23,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckFloat(call, 0));
            RETURN_IF_ERROR(CheckFloat(call, 1));
            const int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -1), rank));
            Dims axes;
            for (int i = axis; i < rank; ++i) axes.push_back(i);
            const DType type = StatisticsType(call.dtype(0));
            ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), type));
            ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {x, x}));
            ASSIGN_OR_RETURN(auto mean, d.Apply("ReduceMean", {square}, {{"axes", axes}}));
            const double epsilon = call.attrs().Float("epsilon", 1e-5);
            ASSIGN_OR_RETURN(mean, d.Apply("Add", {mean, d.Scalar(type, epsilon)}));
            ASSIGN_OR_RETURN(auto root, d.Apply("Sqrt", {mean}));
            ASSIGN_OR_RETURN(auto y, d.Apply("Div", {x, root}));
            // The scale decides the type of y.
            ASSIGN_OR_RETURN(y, CastTo(d, y, call.dtype(1)));
            ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, d.in(1)}));
            if (d.type(y).shape != call.shape(0)) {
              return InvalidArgument("input 1 ", call.in(1).ToString(),
                                     " does not broadcast to input 0 ", call.in(0).ToString());
            }
            return y;
          }};
}

}  // namespace fusion
