#include "core/op/forms.h"

namespace fusion {

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on
OpDef DefineLayerNormalization() {
  return {.name = "LayerNormalization",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "epsilon", .kind = ParamSpec::kFloat},
                     {.name = "stash_type", .kind = ParamSpec::kInt}},
          .min_opset = 17,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -1), rank));
            std::vector<int64_t> axes;
            for (int i = axis; i < rank; ++i) axes.push_back(i);
            AttrMap over = {{"axes", axes}};
            DType type = call.dtype(0);
            ASSIGN_OR_RETURN(auto mean, d.Apply("ReduceMean", {d.in(0)}, over));
            ASSIGN_OR_RETURN(auto centred, d.Apply("Sub", {d.in(0), mean}));
            ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {centred, centred}));
            ASSIGN_OR_RETURN(auto variance, d.Apply("ReduceMean", {square}, over));
            double epsilon = call.attrs().Float("epsilon", 1e-5);
            ASSIGN_OR_RETURN(auto safe, d.Apply("Add", {variance, d.Scalar(type, epsilon)}));
            ASSIGN_OR_RETURN(auto deviation, d.Apply("Sqrt", {safe}));
            ASSIGN_OR_RETURN(auto y, d.Apply("Div", {centred, deviation}));
            ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, d.in(1)}));
            if (!call.has_input(2)) return y;
            return d.Apply("Add", {y, d.in(2)});
          }};
}

}  // namespace fusion
