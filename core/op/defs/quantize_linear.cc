#include "core/op/forms.h"
#include "core/op/quantised.h"

namespace fusion {

/// y = round(x / scale) + zero point, ties to even, saturated; scale and zero point for all of x or
/// for each coordinate along `axis`; u8 without a zero point
OpDef DefineQuantizeLinear() {
  std::vector<ParamSpec> params = QuantisedAxisParams();
  params.push_back({.name = "saturate", .kind = ParamSpec::kInt});
  params.push_back({.name = "precision", .kind = ParamSpec::kInt});
  return {
      .name = "QuantizeLinear",
      .min_inputs = 2,
      .max_inputs = 3,
      .params = std::move(params),
      .min_opset = 10,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        const DType otherwise = call.has_input(2) ? call.dtype(2) : DType::kU8;
        ASSIGN_OR_RETURN(const DType type, QuantisedOutputType(call, otherwise));
        ASSIGN_OR_RETURN(QuantisedAxis along, QuantisedAxisOf(call));
        if (!IsFloat(call.dtype(1))) {
          return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)),
                                 ", expected a float type");
        }
        ASSIGN_OR_RETURN(auto scale, QuantisationOf(d, 1, along.rank, along.axis, along.extent));
        ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), call.dtype(1)));
        ASSIGN_OR_RETURN(x, RoundedQuotient(d, x, scale));
        RETURN_IF_ERROR(CheckOnlyInt(call, "precision", 0));
        if (type != DType::kU16 && type != DType::kI16 && type != DType::kU8 &&
            type != DType::kI8) {
          return Unimplemented("quantises to ", DTypeName(type), "; supported: u8, i8, u16, i16");
        }
        if (!call.has_input(2)) return Quantised(d, x, -1, type);
        if (type != call.dtype(2)) {
          return InvalidArgument("attribute \"output_dtype\" says ", DTypeName(type),
                                 ", input 2 is ", call.in(2).ToString(), "; expected one type");
        }
        ASSIGN_OR_RETURN(auto zero, QuantisationOf(d, 2, along.rank, along.axis, along.extent));
        return Quantised(d, x, zero, type);
      }};
}

}  // namespace fusion
