#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"

namespace fusion {

/// Where the first `count` elements of each row along `axis` are: RowOrder
OpDef DefineRowOrder() {
  return {.name = RowOrder::kName,
          .params = {{.name = "axis", .kind = ParamSpec::kInt, .required = true},
                     {.name = "count", .kind = ParamSpec::kInt, .required = true},
                     {.name = "largest", .kind = ParamSpec::kInt},
                     {.name = "things", .kind = ParamSpec::kInt}},
          .internal = true,
          .opaque = [](const OpCall& call) -> absl::StatusOr<TensorType> {
            ASSIGN_OR_RETURN(Dims dims, StaticDims(call, 0));
            const int rank = static_cast<int>(dims.size());
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), rank));
            const RowOrder order = RowOrderOf(call.attrs(), dims);
            const DType type = call.dtype(0);
            const bool wide = type == DType::kF32 || type == DType::kF64 || type == DType::kI32 ||
                              type == DType::kI64 || type == DType::kU32 || type == DType::kU64;
            const bool shaped = !order.things || (rank == 2 && axis == 0);
            if (!wide || !shaped || order.count < 0 || order.count > order.rows.extent) {
              return InvalidArgument("no order of ", order.count, " of ", call.in(0).ToString());
            }
            if (order.things) return TensorType{DType::kI64, Shape(Dims{order.count})};
            dims[static_cast<size_t>(axis)] = order.count;
            return TensorType{DType::kI64, Shape(dims)};
          }};
}

}  // namespace fusion
