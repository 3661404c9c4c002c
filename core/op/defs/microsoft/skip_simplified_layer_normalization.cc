#include "core/op/forms/normalisation.h"

namespace fusion {

/// s = x + skip + bias, y = SimplifiedLayerNormalization(s) * gamma over the last dim; the bias may
/// be absent. Outputs 2 and 3, if named: 1 / sqrt(mean s^2 + epsilon), and s. Output 1 would be a
/// mean that the op does not take.
OpDef DefineMicrosoftSkipSimplifiedLayerNormalization() {
  return {.name = "com.microsoft.SkipSimplifiedLayerNormalization",
          .min_inputs = 3,
          .max_inputs = 4,
          .params = {{.name = "epsilon", .kind = ParamSpec::kFloat}},
          .max_outputs = 4,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(auto sum, SkipSum(d, 3));
            ASSIGN_OR_RETURN(auto y, d.ApplyMulti("SimplifiedLayerNormalization", {sum, d.in(2)},
                                                  SkipNormAttrs(d.call()), 2));
            ASSIGN_OR_RETURN(auto mean, d.Apply("ReduceMean", {sum}, {{"axes", Dims{-1}}}));
            SetOutputs(d, {mean, y[1], sum});
            return y[0];
          }};
}

}  // namespace fusion
