#include "core/op/forms.h"

namespace fusion {

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias; mean and variance of each channel of
/// each batch entry, scale and bias per channel
OpDef DefineInstanceNormalization() {
  return {.name = "InstanceNormalization",
          .min_inputs = 3,
          .max_inputs = 3,
          .params = {{.name = "epsilon", .kind = ParamSpec::kFloat}},
          .min_opset = 6,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
            int rank = call.shape(0).rank();
            std::vector<int64_t> axes;
            for (int64_t i = 2; i < rank; ++i) axes.push_back(i);
            for (int i = 1; i < 3; ++i) {
              RETURN_IF_ERROR(call.CheckSameType(0, i));
              if (call.shape(i) != Shape({call.shape(0).dim(1)})) {
                return InvalidArgument("input ", i, " ", call.in(i).ToString(),
                                       ", expected one value for each of the ",
                                       call.shape(0).dim(1).ToString(), " channels of input 0 ",
                                       call.in(0).ToString());
              }
            }
            double epsilon = call.attrs().Float("epsilon", 1e-5);
            ASSIGN_OR_RETURN(auto y, Standardise(d, d.in(0), axes, epsilon));
            ASSIGN_OR_RETURN(auto scale, PerChannel(d, d.in(1), rank));
            ASSIGN_OR_RETURN(auto bias, PerChannel(d, d.in(2), rank));
            ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, scale}));
            return d.Apply("Add", {y, bias});
          }};
}

}  // namespace fusion
