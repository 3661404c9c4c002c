#include "core/op/forms.h"
#include "core/op/forms/quantised.h"

namespace fusion {

namespace {

// What y is: the type of the zero point, or as the attribute says.
absl::StatusOr<DType> QuantizedTypeOf(const OpCall& call) {
  const DType fallback = call.has_input(2) ? call.dtype(2) : DType::kU8;
  ASSIGN_OR_RETURN(DType type, QuantisedType(call, "output_dtype", fallback));
  const bool integer = IsInteger(type) && DTypeBytes(type) <= 2;
  if (!integer && (!IsNarrowFloat(type) || type == DType::kF8E8M0)) {
    return InvalidArgument("y would be ", DTypeName(type),
                           ", expected an integer of at most 16 bits, or a float of at most 8 but "
                           "f8e8m0");
  }
  if (!call.has_input(2) || call.dtype(2) == type) return type;
  return InvalidArgument("attribute \"output_dtype\" says ", DTypeName(type), ", input 2 is ",
                         call.in(2).ToString(), "; expected one type");
}

// The nearest value of a narrow float, plus the zero point where the type can have one: of floats
// of 8 bits it is zero, and only says the type.
absl::StatusOr<Decomposition::Value> NarrowFloat(Decomposition& d, Decomposition::Value x,
                                                 Decomposition::Value zero, DType type) {
  if (zero >= 0 && DTypeBits(type) < 8) {
    ASSIGN_OR_RETURN(zero, CastTo(d, zero, d.type(x).dtype));
    ASSIGN_OR_RETURN(x, d.Apply("Add", {x, zero}));
  }
  return d.Apply(
      "Cast", {x},
      {{"to", std::string(DTypeName(type))}, {"saturate", d.call().attrs().Int("saturate", 1)}});
}

}  // namespace

/// y = round(x / scale) + zero point, ties to even, saturated; scale and zero point for all of x,
/// for each coordinate along `axis` or for each `block_size` elements along it; u8 without a zero
/// point or `output_dtype`. The scale's type, or `precision`, is that of the division. Floats of at
/// most 8 bits are rounded to as Cast does, with `saturate`.
OpDef DefineQuantizeLinear() {
  return {
      .name = "QuantizeLinear",
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
        ASSIGN_OR_RETURN(const DType precision, QuantisedType(call, "precision", call.dtype(1)));
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
        Decomposition::Value zero = -1;
        if (call.has_input(2)) {
          ASSIGN_OR_RETURN(zero, BlockwiseQuantisationOf(d, 2, along));
        }
        return IsNarrowFloat(type) ? NarrowFloat(d, x, zero, type) : Quantised(d, x, zero, type);
      }};
}

}  // namespace fusion
