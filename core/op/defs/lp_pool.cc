#include "core/op/forms.h"
#include "core/op/forms/lp_pooling.h"
#include "core/op/forms/windows.h"

namespace fusion {

/// y = the p-norm of each window of the zero-padded input: (the sum of |x|^p)^(1/p)
OpDef DefineLpPool() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "ceil_mode", .kind = ParamSpec::kInt});
  params.push_back({.name = "p", .kind = ParamSpec::kInt});
  return {.name = "LpPool",
          .params = std::move(params),
          .min_opset = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(const int64_t p, LpOrder(call));
            ASSIGN_OR_RETURN(std::vector<Window> windows, PoolWindowsOf(call));
            ASSIGN_OR_RETURN(auto powers, LpPowers(d, d.in(0), p));
            ASSIGN_OR_RETURN(powers, FillAround(d, powers, windows, Expr::Const(call.dtype(0), 0)));
            AttrMap attrs = StrideAttrs(windows);
            attrs.Set("kernel_shape", call.attrs().Ints("kernel_shape"));
            attrs.Set("reduce", std::string("sum"));
            ASSIGN_OR_RETURN(auto sum, d.Apply("WindowReduce", {powers}, std::move(attrs)));
            return LpRoot(d, sum, p);
          }};
}

}  // namespace fusion
