#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"

namespace fusion {

/// y[n] = x[0] op .. op x[n] along `axis`: RunningFold
OpDef DefineRunningFold() {
  return {.name = RunningFold::kName,
          .params = {{.name = "axis", .kind = ParamSpec::kInt, .required = true},
                     {.name = "monoid", .kind = ParamSpec::kString, .required = true},
                     {.name = "exclusive", .kind = ParamSpec::kInt},
                     {.name = "reverse", .kind = ParamSpec::kInt}},
          .internal = true,
          .opaque = [](const OpCall& call) -> absl::StatusOr<TensorType> {
            ASSIGN_OR_RETURN(Dims dims, StaticDims(call, 0));
            const int rank = static_cast<int>(dims.size());
            RETURN_IF_ERROR(call.NormaliseAxis(call.attrs().Int("axis", 0), rank).status());
            const std::string monoid = *call.attrs().Find<std::string>("monoid");
            const bool known =
                monoid == "sum" || monoid == "prod" || monoid == "max" || monoid == "min";
            const DType type = call.dtype(0);
            const bool wide = type == DType::kF32 || type == DType::kF64 || type == DType::kI32 ||
                              type == DType::kI64 || type == DType::kU32 || type == DType::kU64;
            if (known && wide) return call.in(0);
            return InvalidArgument("no running ", monoid, " of ", call.in(0).ToString());
          }};
}

}  // namespace fusion
