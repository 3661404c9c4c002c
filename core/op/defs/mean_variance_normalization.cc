#include "core/op/forms.h"

namespace fusion {

/// y = (x - mean) / sqrt(variance + 1e-9) over `axes` (absent: 0, 2 and 3)
OpDef DefineMeanVarianceNormalization() {
  return {.name = "MeanVarianceNormalization",
          .params = {{.name = "axes", .kind = ParamSpec::kInts}},
          .min_opset = 9,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            return Standardise(d, d.in(0), d.call().attrs().Ints("axes", {0, 2, 3}), 1e-9);
          }};
}

}  // namespace fusion
