#include "core/op/forms/normalisation.h"

namespace fusion {

/// y = x / sqrt(mean x^2 + epsilon) * scale, the mean over the axes from `axis` on; output 1, if
/// named, is 1 / sqrt(mean x^2 + epsilon). An op of ONNX Runtime that it writes in ONNX's domain.
OpDef DefineSimplifiedLayerNormalization() {
  return {.name = "SimplifiedLayerNormalization",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "epsilon", .kind = ParamSpec::kFloat},
                     {.name = "stash_type", .kind = ParamSpec::kInt}},
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const int64_t stash = call.attrs().Int("stash_type", 1);
            if (stash != 1 && !(stash == 11 && call.dtype(0) == DType::kF64)) {
              return Unimplemented("attribute \"stash_type\" is ", stash,
                                   "; supported: 1 (statistics in f32) and, for f64, 11");
            }
            if (call.outputs() < 2) return RmsNormalised(d);
            Decomposition::Value inverse = 0;
            ASSIGN_OR_RETURN(auto y, RmsNormalised(d, &inverse));
            d.SetOutput(1, inverse);
            return y;
          }};
}

}  // namespace fusion
