#include <cmath>

#include "core/op/forms.h"

namespace fusion {

/// y = x / 2 * (1 + erf(x / sqrt 2)), or its tanh approximation if approximate = "tanh"
OpDef DefineGelu() {
  return {.name = "Gelu",
          .params = {{.name = "approximate", .kind = ParamSpec::kString}},
          .min_opset = 20,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            DType type = d.call().dtype(0);
            const auto* mode = d.call().attrs().Find<std::string>("approximate");
            Decomposition::Value x = d.in(0);
            Decomposition::Value inner = 0;
            if (mode == nullptr || *mode == "none") {
              ASSIGN_OR_RETURN(auto scaled, d.Apply("Div", {x, d.Scalar(type, std::sqrt(2.0))}));
              ASSIGN_OR_RETURN(inner, d.Apply("Erf", {scaled}));
            } else if (*mode == "tanh") {
              ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {x, x}));
              ASSIGN_OR_RETURN(auto cube, d.Apply("Mul", {square, x}));
              ASSIGN_OR_RETURN(auto term, d.Apply("Mul", {cube, d.Scalar(type, 0.044715)}));
              ASSIGN_OR_RETURN(auto sum, d.Apply("Add", {x, term}));
              double scale = std::sqrt(2.0 / std::acos(-1.0));
              ASSIGN_OR_RETURN(auto scaled, d.Apply("Mul", {sum, d.Scalar(type, scale)}));
              ASSIGN_OR_RETURN(inner, d.Apply("Tanh", {scaled}));
            } else {
              return InvalidArgument("approximate is ", Quote(*mode), ", expected none or tanh");
            }
            ASSIGN_OR_RETURN(auto gate, d.Apply("Add", {inner, d.Scalar(type, 1)}));
            ASSIGN_OR_RETURN(auto half, d.Apply("Mul", {x, d.Scalar(type, 0.5)}));
            return d.Apply("Mul", {half, gate});
          }};
}

}  // namespace fusion
