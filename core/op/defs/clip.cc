#include "core/op/forms.h"

namespace fusion {

namespace {

// Before opset 11 the bounds were attributes.
absl::Status NormaliseClip(OnnxCall& call) {
  if (call.opset >= 11) {
    for (const char* name : {"low", "high"}) {
      if (call.attrs.Has(name)) return InvalidArgument("unknown attribute ", Quote(name));
    }
    return absl::OkStatus();
  }
  call.attrs.Set("low", call.attrs.Float("min", -3.4028234663852886e38));
  call.attrs.Set("high", call.attrs.Float("max", 3.4028234663852886e38));
  call.attrs.Erase("min");
  call.attrs.Erase("max");
  return absl::OkStatus();
}

}  // namespace

/// y = min(max(x, low), high); the bounds are inputs 1 and 2 or, from old opsets, attributes
OpDef DefineClip() {
  return {.name = "Clip",
          .min_inputs = 1,
          .max_inputs = 3,
          .params = {{.name = "low", .kind = ParamSpec::kFloat},
                     {.name = "high", .kind = ParamSpec::kFloat}},
          .min_opset = 6,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            Decomposition::Value y = d.in(0);
            const char* ops[2] = {"Max", "Min"};
            const char* names[2] = {"low", "high"};
            for (int i = 0; i < 2; ++i) {
              if (call.has_input(i + 1)) {
                const Shape& bound = call.shape(i + 1);
                if (bound.rank() > 1 || (bound.rank() == 1 && bound.dim(0) != Dim(1))) {
                  return InvalidArgument("input ", i + 1, " ", call.in(i + 1).ToString(),
                                         ", expected a scalar");
                }
                ASSIGN_OR_RETURN(y, d.Apply(ops[i], {y, d.in(i + 1)}));
              } else if (const auto* bound = call.attrs().Find<double>(names[i])) {
                ASSIGN_OR_RETURN(y, d.Apply(ops[i], {y, d.Scalar(call.dtype(0), *bound)}));
              }
            }
            if (y == d.in(0)) return d.Apply("Identity", {y});
            return y;
          },
          .normalise = NormaliseClip};
}

}  // namespace fusion
