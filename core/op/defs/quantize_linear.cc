#include "core/op/forms.h"
#include "core/op/quantised.h"

namespace fusion {

/// y = round(x / scale) + zero point, ties to even, saturated; scale and zero point for all of x or
/// for each coordinate along `axis`; u8 without a zero point
OpDef DefineQuantizeLinear() {
  return {.name = "QuantizeLinear",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "saturate", .kind = ParamSpec::kInt}},
          .min_opset = 10,
          .max_opset = 20,  // from 21 on in blocks
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(QuantisedAxis along, QuantisedAxisOf(call));
            if (!IsFloat(call.dtype(1))) {
              return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)),
                                     ", expected a float type");
            }
            ASSIGN_OR_RETURN(auto scale,
                             QuantisationOf(d, 1, along.rank, along.axis, along.extent));
            ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), call.dtype(1)));
            ASSIGN_OR_RETURN(x, RoundedQuotient(d, x, scale));
            if (!call.has_input(2)) return Quantised(d, x, -1, DType::kU8);
            if (call.dtype(2) != DType::kU16 && call.dtype(2) != DType::kI16) {
              RETURN_IF_ERROR(CheckQuantised(call, 2));
            }
            ASSIGN_OR_RETURN(auto zero, QuantisationOf(d, 2, along.rank, along.axis, along.extent));
            return Quantised(d, x, zero, call.dtype(2));
          }};
}

}  // namespace fusion
