#include "core/op/forms.h"
#include "core/op/quantised.h"

namespace fusion {

/// y = (x - zero point) * scale, in the scale's type or `output_dtype`; scale and zero point for
/// all of x, for each coordinate along `axis` or for each `block_size` elements along it
OpDef DefineDequantizeLinear() {
  return {.name = "DequantizeLinear",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "block_size", .kind = ParamSpec::kInt},
                     {.name = "output_dtype", .kind = ParamSpec::kInt}},
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(QuantisedAxis along, QuantisedAxisOf(call));
            if (!IsInteger(call.dtype(0)) || !IsFloat(call.dtype(1))) {
              return InvalidArgument("inputs are ", DTypeName(call.dtype(0)), " and ",
                                     DTypeName(call.dtype(1)), ", expected integers and a float");
            }
            ASSIGN_OR_RETURN(const DType type, QuantisedType(call, "output_dtype", call.dtype(1)));
            if (!IsFloat(type)) {
              return InvalidArgument("attribute \"output_dtype\" is that of ", DTypeName(type),
                                     ", expected a float type");
            }
            Decomposition::Value zero = -1;
            if (call.has_input(2)) {
              RETURN_IF_ERROR(call.CheckSameType(0, 2));
              ASSIGN_OR_RETURN(zero, BlockwiseQuantisationOf(d, 2, along));
            }
            ASSIGN_OR_RETURN(auto scale, BlockwiseQuantisationOf(d, 1, along));
            ASSIGN_OR_RETURN(scale, CastTo(d, scale, type));
            ASSIGN_OR_RETURN(auto wide, WithoutZeroPoint(d, d.in(0), zero));
            ASSIGN_OR_RETURN(auto y, CastTo(d, wide, type));
            return d.Apply("Mul", {y, scale});
          }};
}

}  // namespace fusion
