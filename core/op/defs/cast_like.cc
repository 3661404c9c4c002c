#include "core/op/forms.h"

namespace fusion {

/// y = x rounded to the element type of input 1
OpDef DefineCastLike() {
  return {.name = "CastLike",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "saturate", .kind = ParamSpec::kInt}},
          .min_opset = 15,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            return d.Apply("Cast", {d.in(0)}, {{"to", std::string(DTypeName(d.call().dtype(1)))}});
          }};
}

}  // namespace fusion
