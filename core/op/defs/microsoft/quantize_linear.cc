#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// ONNX's QuantizeLinear, for opsets that lack f16 or 16-bit integers; x and its scale are
/// divided in f32
OpDef DefineMicrosoftQuantizeLinear() {
  return {.name = "com.microsoft.QuantizeLinear",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "axis", .kind = ParamSpec::kInt}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RETURN_IF_ERROR(CheckFloat(d.call(), 0));
            RETURN_IF_ERROR(CheckFloat(d.call(), 1));
            std::vector<Decomposition::Value> inputs = {d.in(0), d.in(1)};
            for (auto& input : inputs) {
              ASSIGN_OR_RETURN(input, CastTo(d, input, DType::kF32));
            }
            if (d.call().has_input(2)) inputs.push_back(d.in(2));
            return d.Apply("QuantizeLinear", std::move(inputs), d.call().attrs());
          }};
}

}  // namespace fusion
