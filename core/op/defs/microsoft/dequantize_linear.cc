#include "core/op/forms/quantised.h"

namespace fusion {

/// ONNX's DequantizeLinear, for opsets that lack f16 or 16-bit integers
OpDef DefineMicrosoftDequantizeLinear() {
  return {.name = "com.microsoft.DequantizeLinear",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "axis", .kind = ParamSpec::kInt}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            std::vector<Decomposition::Value> inputs = {d.in(0), d.in(1)};
            if (d.call().has_input(2)) inputs.push_back(d.in(2));
            return d.Apply("DequantizeLinear", std::move(inputs), d.call().attrs());
          }};
}

}  // namespace fusion
