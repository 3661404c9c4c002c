#include "core/op/forms.h"
#include "core/op/quantised.h"

namespace fusion {

/// y = (x - zero point) * scale; scale and zero point for all of x or for each coordinate along
/// `axis`
OpDef DefineDequantizeLinear() {
  return {.name = "DequantizeLinear",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = QuantisedAxisParams(),
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(const DType type, QuantisedOutputType(call, call.dtype(1)));
            ASSIGN_OR_RETURN(QuantisedAxis along, QuantisedAxisOf(call));
            if (!IsInteger(call.dtype(0)) || !IsFloat(call.dtype(1))) {
              return InvalidArgument("inputs are ", DTypeName(call.dtype(0)), " and ",
                                     DTypeName(call.dtype(1)), ", expected integers and a float");
            }
            Decomposition::Value zero = -1;
            if (call.has_input(2)) {
              RETURN_IF_ERROR(call.CheckSameType(0, 2));
              ASSIGN_OR_RETURN(zero, QuantisationOf(d, 2, along.rank, along.axis, along.extent));
            }
            ASSIGN_OR_RETURN(auto scale,
                             QuantisationOf(d, 1, along.rank, along.axis, along.extent));
            ASSIGN_OR_RETURN(auto wide, WithoutZeroPoint(d, d.in(0), zero));
            ASSIGN_OR_RETURN(auto y, CastTo(d, wide, call.dtype(1)));
            ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, scale}));
            return CastTo(d, y, type);
          }};
}

}  // namespace fusion
