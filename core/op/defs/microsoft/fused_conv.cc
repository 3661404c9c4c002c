#include "core/op/forms/fused_activation.h"

namespace fusion {

/// y = activation(Conv(x, w, bias) + z), where bias and z may be absent; the activation's numbers
/// are `activation_params`
OpDef DefineMicrosoftFusedConv() {
  return {.name = "com.microsoft.FusedConv",
          .min_inputs = 2,
          .max_inputs = 4,
          .params = FusedConvParams(),
          .decompose = [](Decomposition& d) { return FusedConvolution(d, false); }};
}

}  // namespace fusion
