#include "core/op/forms.h"
#include "core/op/quantised.h"

namespace fusion {

namespace {

// What y is: the type of the zero point, or as the attribute says.
absl::StatusOr<DType> QuantizedTypeOf(const OpCall& call) {
  const DType fallback = call.has_input(2) ? call.dtype(2) : DType::kU8;
  ASSIGN_OR_RETURN(DType type, QuantisedType(call, "output_dtype", fallback));
  const bool fits =
      type == DType::kU8 || type == DType::kI8 || type == DType::kU16 || type == DType::kI16;
  if (!fits) {
    return InvalidArgument("y would be ", DTypeName(type), ", expected one of u8, i8, u16 and i16");
  }
  if (!call.has_input(2) || call.dtype(2) == type) return type;
  return InvalidArgument("attribute \"output_dtype\" says ", DTypeName(type), ", input 2 is ",
                         call.in(2).ToString(), "; expected one type");
}

}  // namespace

/// y = round(x / scale) + zero point, ties to even, saturated; scale and zero point for all of x,
/// for each coordinate along `axis` or for each `block_size` elements along it; u8 without a zero
/// point or `output_dtype`. The scale's type, or `precision`, is that of the division.
OpDef DefineQuantizeLinear() {
  return {.name = "QuantizeLinear",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "block_size", .kind = ParamSpec::kInt},
                     {.name = "output_dtype", .kind = ParamSpec::kInt},
                     {.name = "precision", .kind = ParamSpec::kInt},
                     {.name = "saturate", .kind = ParamSpec::kInt}},
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(QuantisedAxis along, QuantisedAxisOf(call));
            ASSIGN_OR_RETURN(const DType precision,
                             QuantisedType(call, "precision", call.dtype(1)));
            if (!IsFloat(call.dtype(1)) || !IsFloat(precision)) {
              return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)),
                                     IsFloat(precision) ? "" : " and so is the precision",
                                     ", expected a float type");
            }
            ASSIGN_OR_RETURN(const DType type, QuantizedTypeOf(call));
            ASSIGN_OR_RETURN(auto scale, BlockwiseQuantisationOf(d, 1, along));
            ASSIGN_OR_RETURN(scale, CastTo(d, scale, precision));
            ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), precision));
            ASSIGN_OR_RETURN(x, RoundedQuotient(d, x, scale));
            if (!call.has_input(2)) return Quantised(d, x, -1, type);
            ASSIGN_OR_RETURN(auto zero, BlockwiseQuantisationOf(d, 2, along));
            return Quantised(d, x, zero, type);
          }};
}

}  // namespace fusion
