#include "core/op/forms/normalisation.h"

namespace fusion {

/// s = x + skip + bias, y = LayerNormalization(s) * gamma + beta over the last dim; beta and bias
/// may be absent. Outputs 1 to 3, if named: the mean, 1 / sqrt(variance + epsilon), and s.
OpDef DefineMicrosoftSkipLayerNormalization() {
  return {.name = "com.microsoft.SkipLayerNormalization",
          .min_inputs = 3,
          .max_inputs = 5,
          .params = {{.name = "epsilon", .kind = ParamSpec::kFloat}},
          .max_outputs = 4,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(auto sum, SkipSum(d, 4));
            std::vector<Decomposition::Value> inputs = {sum, d.in(2)};
            if (d.call().has_input(3)) inputs.push_back(d.in(3));
            ASSIGN_OR_RETURN(
                auto y, d.ApplyMulti("LayerNormalization", inputs, SkipNormAttrs(d.call()), 3));
            SetOutputs(d, {y[1], y[2], sum});
            return y[0];
          }};
}

}  // namespace fusion
