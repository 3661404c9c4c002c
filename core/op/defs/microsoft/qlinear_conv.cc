#include "core/op/forms.h"
#include "core/op/forms/convolution.h"

namespace fusion {

/// ONNX's QLinearConv; `channels_last`: of x and y
OpDef DefineMicrosoftQlinearConv() {
  std::vector<ParamSpec> params = ConvolutionParams();
  params.push_back({.name = "channels_last", .kind = ParamSpec::kInt});
  return {.name = "com.microsoft.QLinearConv",
          .min_inputs = 8,
          .max_inputs = 9,
          .params = std::move(params),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RETURN_IF_ERROR(d.call().CheckRankAtLeast(0, 3));
            const bool last = d.call().attrs().Int("channels_last", 0) != 0;
            std::vector<Decomposition::Value> inputs;
            for (int i = 0; i < d.call().inputs() && d.call().has_input(i); ++i) {
              inputs.push_back(d.in(i));
            }
            if (last) {
              ASSIGN_OR_RETURN(inputs[0], ChannelsFirst(d, inputs[0]));
            }
            ASSIGN_OR_RETURN(auto y, d.Apply("QLinearConv", std::move(inputs),
                                             AttrsNamed(d.call(), ConvolutionParams())));
            return last ? ChannelsLast(d, y) : y;
          }};
}

}  // namespace fusion
