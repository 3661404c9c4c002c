#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y[i..] = data[i.., with indices[i..] at `axis`]: negative indices count from the end
OpDef DefineGatherElements() {
  return {
      .name = "GatherElements",
      .min_inputs = 2,
      .max_inputs = 2,
      .params = {{.name = "axis", .kind = ParamSpec::kInt}},
      .min_opset = 11,
      .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
        const Shape& data = call.shape(0);
        const Shape& indices = call.shape(1);
        RETURN_IF_ERROR(call.CheckRankAtLeast(0, 1));
        if (call.dtype(1) != DType::kI64 && call.dtype(1) != DType::kI32) {
          return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)), ", expected i64 or i32");
        }
        ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), data.rank()));
        LoopBody body;
        body.axes = NumberedAxes(indices.dims());
        body.reads.resize(2);
        body.value = call.In(0);
        bool fits = indices.rank() == data.rank();
        bool none = false;
        for (int d = 0; fits && d < data.rank(); ++d) {
          const Dim& extent = indices.dim(d);
          none = none || extent == Dim(0);
          fits = d == axis || extent == data.dim(d) ||
                 (extent.is_static() && data.dim(d).is_static() &&
                  extent.value() <= data.dim(d).value());
          body.reads[0].index.push_back(d == axis ? IndexExpr::Indirect(1) : IndexExpr::Axis(d));
          body.reads[1].index.push_back(IndexExpr::Axis(d));
          body.write.push_back(IndexExpr::Axis(d));
        }
        if (!fits) {
          return InvalidArgument("indices ", call.in(1).ToString(), " name more than input 0 ",
                                 call.in(0).ToString(), " has beside axis ", axis);
        }
        if (data.dim(axis) == Dim(0) && !none) {
          return InvalidArgument("axis ", axis, " of input 0 ", call.in(0).ToString(),
                                 " has no element that an index could name");
        }
        return body;
      }};
}

}  // namespace fusion
