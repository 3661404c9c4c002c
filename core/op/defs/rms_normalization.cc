#include "core/op/forms/normalisation.h"

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
          .decompose = [](Decomposition& d) { return RmsNormalised(d); }};
}

}  // namespace fusion
