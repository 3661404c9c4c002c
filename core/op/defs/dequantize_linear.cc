#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

/// y = (x - zero point) * scale, in the scale's type or `output_dtype`; scale and zero point for
/// all of x, for each coordinate along `axis` or for each `block_size` elements along it; x of
/// integers, or of floats of at most 8 bits
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
            const bool is_float = IsNarrowFloat(call.dtype(0));
            if (!(IsInteger(call.dtype(0)) || is_float) || !IsFloat(call.dtype(1))) {
              return InvalidArgument("inputs are ", DTypeName(call.dtype(0)), " and ",
                                     DTypeName(call.dtype(1)),
                                     ", expected integers, or floats of at most 8 bits, and a "
                                     "float");
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
            auto y = d.in(0);
            if (!is_float) {
              ASSIGN_OR_RETURN(y, WithoutZeroPoint(d, y, zero));
            }
            ASSIGN_OR_RETURN(y, CastTo(d, y, type));
            // Of floats of 8 bits the zero point is zero, and only says the type.
            if (is_float && zero >= 0 && DTypeBits(call.dtype(0)) < 8) {
              ASSIGN_OR_RETURN(zero, CastTo(d, zero, type));
              ASSIGN_OR_RETURN(y, d.Apply("Sub", {y, zero}));
            }
            return d.Apply("Mul", {y, scale});
          }};
}

}  // namespace fusion
