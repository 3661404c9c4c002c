#include "core/op/forms.h"
#include "core/op/forms/convolution.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = a convolution of quantised x and w plus a bias in i32, quantised: inputs are x, its scale
/// and zero point, w, its scale and zero point (for all or for each output channel), scale and zero
/// point of y, the bias
OpDef DefineQlinearConv() {
  return {.name = "QLinearConv",
          .min_inputs = 8,
          .max_inputs = 9,
          .params = ConvolutionParams(),
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(auto sums,
                             QuantisedConvolution(d, {.x = 0, .w = 3, .x_zero = 2, .w_zero = 5}));
            const int rank = call.shape(0).rank();
            const Dim& channels = call.shape(3).dim(0);
            if (call.has_input(8)) {
              if (call.in(8) != TensorType{DType::kI32, Shape({channels})}) {
                return InvalidArgument("input 8 is ", call.in(8).ToString(), ", expected i32[",
                                       channels.ToString(), "]");
              }
              ASSIGN_OR_RETURN(auto bias, PerChannel(d, d.in(8), rank));
              ASSIGN_OR_RETURN(sums, d.Apply("Add", {sums, bias}));
            }
            ASSIGN_OR_RETURN(auto x_scale, QuantisationOf(d, 1, 0, 0, Dim(1)));
            ASSIGN_OR_RETURN(auto w_scale, QuantisationOf(d, 4, rank, 1, channels));
            ASSIGN_OR_RETURN(auto scale, d.Apply("Mul", {x_scale, w_scale}));
            return Requantised(d, sums, scale, 6, 7);
          }};
}

}  // namespace fusion
