#include "core/op/forms.h"

namespace fusion {

/// y = (x - mean) / (deviation + 1e-9) over `axes` (absent: 0, 2 and 3)
OpDef DefineMeanVarianceNormalization() {
  return {
      .name = "MeanVarianceNormalization",
      .params = {{.name = "axes", .kind = ParamSpec::kInts}},
      .min_opset = 9,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        std::vector<int64_t> axes = d.call().attrs().Ints("axes", {0, 2, 3});
        ASSIGN_OR_RETURN(Spread x, SpreadOver(d, d.in(0), axes));
        ASSIGN_OR_RETURN(auto deviation, d.Apply("Sqrt", {x.variance}));
        ASSIGN_OR_RETURN(auto safe, d.Apply("Add", {deviation, d.Scalar(d.call().dtype(0), 1e-9)}));
        return d.Apply("Div", {x.centred, safe});
      }};
}

}  // namespace fusion
