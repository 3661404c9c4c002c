#include "core/op/forms.h"

namespace fusion {

/// ONNX's Pad with the pads as an input, for opsets that have them as an attribute
OpDef DefineMicrosoftPad() {
  return {.name = "com.microsoft.Pad",
          .max_inputs = 2,
          .params = {{.name = "pads", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true},
                     {.name = "constant_value",
                      .kind = ParamSpec::kTensor,
                      .onnx_input = 2,
                      .unknown_is_operand = true},
                     {.name = "mode", .kind = ParamSpec::kString}},
          .decompose = [](Decomposition& d) {
            std::vector<Decomposition::Value> inputs = {d.in(0)};
            if (d.call().has_input(1)) inputs.push_back(d.in(1));
            return d.Apply("Pad", std::move(inputs), d.call().attrs());
          }};
}

}  // namespace fusion
