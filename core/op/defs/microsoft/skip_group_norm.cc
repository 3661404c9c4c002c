#include "core/op/forms/normalisation.h"

namespace fusion {

/// s = x + skip + bias, y = GroupNorm(s): x is [batch, height, width, channels], skip like it or
/// [batch, channels] or [batch, 1, 1, channels], the bias may be absent. Output 1, if named: s.
OpDef DefineMicrosoftSkipGroupNorm() {
  return {.name = "com.microsoft.SkipGroupNorm",
          .min_inputs = 4,
          .max_inputs = 5,
          .params = GroupNormParams(),
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckOnlyInt(call, "channels_last", 1));
            auto skip = d.in(3);
            if (call.shape(3).rank() == 2) {
              ASSIGN_OR_RETURN(skip, d.Apply("Unsqueeze", {skip}, {{"axes", Dims{1, 2}}}));
            }
            ASSIGN_OR_RETURN(auto sum, d.Apply("Add", {d.in(0), skip}));
            if (d.type(sum) != call.in(0)) {
              return InvalidArgument("input 3 is ", call.in(3).ToString(),
                                     ", expected what broadcasts to input 0 ",
                                     call.in(0).ToString());
            }
            if (call.has_input(4)) {
              ASSIGN_OR_RETURN(sum, PlusBias(d, sum, 4));
            }
            SetOutputs(d, {sum});
            return GroupNormalised(d, sum);
          }};
}

}  // namespace fusion
