#include "core/op/forms.h"

namespace fusion {

/// y = alpha * op(a) op(b), where op swaps the last two dims if asked: FusedMatMul under the name
/// it had first
OpDef DefineMicrosoftTransposeMatMul() {
  return {.name = "com.microsoft.TransposeMatMul",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "alpha", .kind = ParamSpec::kFloat},
                     {.name = "transA", .kind = ParamSpec::kInt},
                     {.name = "transB", .kind = ParamSpec::kInt}},
          .decompose = [](Decomposition& d) {
            return d.Apply("com.microsoft.FusedMatMul", {d.in(0), d.in(1)}, d.call().attrs());
          }};
}

}  // namespace fusion
