#include "core/op/forms/attention.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// Attention of quantised x and w: inputs are x, w, the bias, the scales of x and w, the mask, the
/// zero points of x and w, and the past; those behind the scales may be absent
OpDef DefineMicrosoftQattention() {
  return {.name = "com.microsoft.QAttention",
          .min_inputs = 5,
          .max_inputs = 9,
          .params = ProjectedAttentionParams(),
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
            ASSIGN_OR_RETURN(Dims w, StaticDims(call, 1));
            if (x.size() != 3 || w.size() != 2) {
              return InvalidArgument("inputs 0 and 1 are ", call.in(0).ToString(), " and ",
                                     call.in(1).ToString(),
                                     ", expected [batch, rows, n] and [n, m]");
            }
            ASSIGN_OR_RETURN(auto scale, QuantisationOf(d, 3, 0, 0, Dim(1)));
            ASSIGN_OR_RETURN(auto all,
                             ProductToFloat(d, {.x = 0, .w = 1, .x_zero = 6, .w_zero = 7}, scale,
                                            /*b_scale=*/4, /*bias=*/2));
            return AttendProjected(d, all, {.mask = 5, .past = 8});
          }};
}

}  // namespace fusion
