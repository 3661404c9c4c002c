#include "core/op/forms/fused_activation.h"

namespace fusion {

/// FusedConv of x and z that have their channels last, like y; w is as Conv has it
OpDef DefineMicrosoftNhwcFusedConv() {
  return {.name = "com.microsoft.NhwcFusedConv",
          .min_inputs = 2,
          .max_inputs = 4,
          .params = FusedConvParams(),
          .decompose = [](Decomposition& d) { return FusedConvolution(d, true); }};
}

}  // namespace fusion
