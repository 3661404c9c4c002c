#include "core/op/forms.h"
#include "core/op/forms/lp_pooling.h"

namespace fusion {

/// y = the p-norm of each channel over all spatial dims, which keep the extent 1
OpDef DefineGlobalLpPool() {
  return {.name = "GlobalLpPool",
          .params = {{.name = "p", .kind = ParamSpec::kInt}},
          .min_opset = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RETURN_IF_ERROR(d.call().CheckRankAtLeast(0, 2));
            ASSIGN_OR_RETURN(const int64_t p, LpOrder(d.call()));
            std::vector<int64_t> axes;
            for (int64_t i = 2; i < d.call().shape(0).rank(); ++i) axes.push_back(i);
            ASSIGN_OR_RETURN(auto powers, LpPowers(d, d.in(0), p));
            ASSIGN_OR_RETURN(auto sum,
                             d.Apply("ReduceSum", {powers},
                                     {{"axes", axes}, {"noop_with_empty_axes", int64_t{1}}}));
            return LpRoot(d, sum, p);
          }};
}

}  // namespace fusion
