#include "core/op/forms.h"

namespace fusion {

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on; outputs 1
/// and 2, if named, are the mean and 1 / sqrt(variance + epsilon)
OpDef DefineLayerNormalization() {
  return {
      .name = "LayerNormalization",
      .min_inputs = 2,
      .max_inputs = 3,
      .params = {{.name = "axis", .kind = ParamSpec::kInt},
                 {.name = "epsilon", .kind = ParamSpec::kFloat},
                 {.name = "stash_type", .kind = ParamSpec::kInt}},
      // ONNX has it since opset 17; ONNX Runtime's optimiser writes it into models of any opset.
      .lenient_below = 17,
      .max_outputs = 3,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        int rank = call.shape(0).rank();
        ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -1), rank));
        std::vector<int64_t> axes;
        for (int i = axis; i < rank; ++i) axes.push_back(i);
        AttrMap over = {{"axes", axes}};
        if (!IsFloat(call.dtype(0))) {
          return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                 ", expected a float type");
        }
        DType type = StatisticsType(call.dtype(0));
        bool narrow = type != call.dtype(0);
        Decomposition::Value x = d.in(0);
        if (narrow) {
          ASSIGN_OR_RETURN(x, d.Apply("Cast", {x}, {{"to", std::string(DTypeName(type))}}));
        }
        ASSIGN_OR_RETURN(auto mean, d.Apply("ReduceMean", {x}, over));
        ASSIGN_OR_RETURN(auto centred, d.Apply("Sub", {x, mean}));
        ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {centred, centred}));
        ASSIGN_OR_RETURN(auto variance, d.Apply("ReduceMean", {square}, over));
        double epsilon = call.attrs().Float("epsilon", 1e-5);
        ASSIGN_OR_RETURN(auto safe, d.Apply("Add", {variance, d.Scalar(type, epsilon)}));
        ASSIGN_OR_RETURN(auto deviation, d.Apply("Sqrt", {safe}));
        if (call.outputs() > 1) d.SetOutput(1, mean);
        if (call.outputs() > 2) {
          ASSIGN_OR_RETURN(auto inverse, d.Apply("Reciprocal", {deviation}));
          d.SetOutput(2, inverse);
        }
        ASSIGN_OR_RETURN(auto y, d.Apply("Div", {centred, deviation}));
        if (narrow) {
          ASSIGN_OR_RETURN(y,
                           d.Apply("Cast", {y}, {{"to", std::string(DTypeName(call.dtype(0)))}}));
        }
        ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, d.in(1)}));
        if (!call.has_input(2)) return y;
        return d.Apply("Add", {y, d.in(2)});
      }};
}

}  // namespace fusion
