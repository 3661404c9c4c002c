#include "core/op/forms/convolution.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = the sums of (x - zero point of x) (w - zero point of w) over the windows of x, in i32; what
/// pads x counts as its zero point; zero points for all, that of w also for each output channel
OpDef DefineConvInteger() {
  return {.name = "ConvInteger",
          .min_inputs = 2,
          .max_inputs = 4,
          .params = ConvolutionParams(),
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            return QuantisedConvolution(d, {.x = 0, .w = 1, .x_zero = 2, .w_zero = 3});
          }};
}

}  // namespace fusion
