#include "core/op/forms.h"
#include "core/op/windows.h"

namespace fusion {

/// y = the largest element of each window; NaN if one is NaN
OpDef DefineMaxPool() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "ceil_mode", .kind = ParamSpec::kInt});
  // The order in which output 1 counts elements: no matter for output 0.
  params.push_back({.name = "storage_order", .kind = ParamSpec::kInt});
  return {.name = "MaxPool",
          .params = std::move(params),
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            if (call.outputs() > 1) {
              return Unimplemented("output 1 (Indices) is not supported");
            }
            auto max = Monoid::Named("max", call.dtype(0));
            if (!max) return InvalidArgument("input 0 is bool, expected a numeric type");
            ASSIGN_OR_RETURN(std::vector<Window> windows, PoolWindowsOf(call));
            ASSIGN_OR_RETURN(auto x, FillAround(d, d.in(0), windows, max->identity()[0]));
            AttrMap attrs = StrideAttrs(windows);
            attrs.Set("kernel_shape", call.attrs().Ints("kernel_shape"));
            attrs.Set("reduce", std::string("max"));
            return d.Apply("WindowReduce", {x}, std::move(attrs));
          }};
}

}  // namespace fusion
