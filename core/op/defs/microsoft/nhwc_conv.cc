#include "core/op/forms.h"
#include "core/op/forms/convolution.h"

namespace fusion {

/// Conv of an x that has its channels last, like y, and so has w: [m, kernel.., channels / group]
OpDef DefineMicrosoftNhwcConv() {
  return {.name = "com.microsoft.NhwcConv",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = ConvolutionParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(call.CheckRankAtLeast(i, 3));
            ASSIGN_OR_RETURN(auto x, ChannelsFirst(d, d.in(0)));
            ASSIGN_OR_RETURN(auto w, ChannelsFirst(d, d.in(1)));
            std::vector<Decomposition::Value> operands = {x, w};
            if (call.has_input(2)) operands.push_back(d.in(2));
            ASSIGN_OR_RETURN(auto y, d.Apply("Conv", std::move(operands), call.attrs()));
            return ChannelsLast(d, y);
          }};
}

}  // namespace fusion
