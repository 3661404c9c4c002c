#include "core/op/forms.h"
#include "core/op/forms/convolution.h"

namespace fusion {

/// y = the sums of products of the weight and each window of the zero-padded input, plus a bias per
/// output channel
OpDef DefineConv() {
  return {.name = "Conv",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = ConvolutionParams(),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            if (!IsFloat(call.dtype(0))) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected a float type");
            }
            ASSIGN_OR_RETURN(auto y, Convolved(d, d.in(0), d.in(1), 1));
            if (!call.has_input(2)) return y;
            RETURN_IF_ERROR(call.CheckSameType(0, 2));
            if (call.shape(2) != Shape({call.shape(1).dim(0)})) {
              return InvalidArgument("input 2 ", call.in(2).ToString(),
                                     ", expected one value for"
                                     " each of ",
                                     call.shape(1).dim(0).ToString(), " output channels");
            }
            ASSIGN_OR_RETURN(auto bias, PerChannel(d, d.in(2), call.shape(0).rank()));
            return d.Apply("Add", {y, bias});
          }};
}

}  // namespace fusion
