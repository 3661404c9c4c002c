#include "core/op/forms.h"

namespace fusion {

/// ONNX's Trilu, for opsets that have none
OpDef DefineMicrosoftTrilu() {
  return {
      .name = "com.microsoft.Trilu",
      .params = {{.name = "upper", .kind = ParamSpec::kInt},
                 {.name = "k", .kind = ParamSpec::kInt, .onnx_input = 1, .any_integer = true}},
      .decompose = [](Decomposition& d) { return d.Apply("Trilu", {d.in(0)}, d.call().attrs()); }};
}

}  // namespace fusion
