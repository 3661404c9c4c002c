#include "core/op/forms.h"

namespace fusion {

/// y = x rounded to the element type of input 1, as Cast does
OpDef DefineCastLike() {
  return {.name = "CastLike",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "saturate", .kind = ParamSpec::kInt},
                     {.name = "round_mode", .kind = ParamSpec::kString}},
          .min_opset = 15,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            AttrMap attrs = d.call().attrs();
            attrs.Set("to", std::string(DTypeName(d.call().dtype(1))));
            return d.Apply("Cast", {d.in(0)}, std::move(attrs));
          }};
}

}  // namespace fusion
