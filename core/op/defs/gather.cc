#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y[.., i.., ..] = data[.., indices[i..], ..]: an indexed read along `axis`; negative indices
/// count from the end
OpDef DefineGather() {
  return {
      .name = "Gather",
      .min_inputs = 2,
      .max_inputs = 2,
      .params = {{.name = "axis", .kind = ParamSpec::kInt}},
      .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
        const Shape& data = call.shape(0);
        const Shape& indices = call.shape(1);
        if (call.dtype(1) != DType::kI64 && call.dtype(1) != DType::kI32) {
          return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)), ", expected i64 or i32");
        }
        ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), data.rank()));
        bool none =
            std::find(indices.dims().begin(), indices.dims().end(), Dim(0)) != indices.dims().end();
        if (data.dim(axis) == Dim(0) && !none) {
          return InvalidArgument("axis ", axis, " of input 0 ", call.in(0).ToString(),
                                 " has no element that an index could name");
        }
        std::vector<Dim> extents;
        Read table;
        Read index;
        for (int d = 0; d < data.rank(); ++d) {
          if (d != axis) {
            table.index.push_back(IndexExpr::Axis(static_cast<int>(extents.size())));
            extents.push_back(data.dim(d));
            continue;
          }
          table.index.push_back(IndexExpr::Indirect(1));
          for (const Dim& extent : indices.dims()) {
            index.index.push_back(IndexExpr::Axis(static_cast<int>(extents.size())));
            extents.push_back(extent);
          }
        }
        LoopBody body;
        body.axes = NumberedAxes(extents);
        for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
          body.write.push_back(IndexExpr::Axis(d));
        }
        body.reads = {std::move(table), std::move(index)};
        body.value = call.In(0);
        return body;
      }};
}

}  // namespace fusion
