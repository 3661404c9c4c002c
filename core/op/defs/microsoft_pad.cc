#include "core/op/forms.h"

namespace fusion {

/// ONNX's Pad with the pads as an input, for opsets that have them as an attribute
OpDef DefineMicrosoftPad() {
  return {
      .name = "com.microsoft.Pad",
      .params = {{.name = "pads", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true},
                 {.name = "constant_value", .kind = ParamSpec::kTensor, .onnx_input = 2},
                 {.name = "mode", .kind = ParamSpec::kString}},
      .decompose = [](Decomposition& d) { return d.Apply("Pad", {d.in(0)}, d.call().attrs()); }};
}

}  // namespace fusion
