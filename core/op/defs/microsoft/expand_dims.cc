#include "core/op/forms.h"

namespace fusion {

/// y = x with a dim of extent 1 inserted at `axis`, input 1
OpDef DefineMicrosoftExpandDims() {
  return {
      .name = "com.microsoft.ExpandDims",
      .params = {{.name = "axis", .kind = ParamSpec::kInt, .onnx_input = 1, .required = true}},
      .decompose = [](Decomposition& d) {
        return d.Apply("Unsqueeze", {d.in(0)}, {{"axes", Dims{d.call().attrs().Int("axis", 0)}}});
      }};
}

}  // namespace fusion
