#include "core/op/forms.h"

namespace fusion {

/// y[b.., i.., r..] = data[b.., indices_0[b.., i..], indices_1[b.., i..], .., r..]: inputs 1 and up
/// are the indices of as many dims of data behind the first `batch_dims`, all of one shape;
/// negative ones count from the end
OpDef DefineGatherAt() {
  return {.name = "GatherAt",
          .min_inputs = 2,
          .max_inputs = kMaxGatherColumns + 1,
          .params = {{.name = "batch_dims", .kind = ParamSpec::kInt}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const Shape& data = call.shape(0);
            const Shape& indices = call.shape(1);
            const auto batch = static_cast<int>(call.attrs().Int("batch_dims", 0));
            const int depth = call.inputs() - 1;
            if (batch < 0 || batch > indices.rank() || batch + depth > data.rank()) {
              return InvalidArgument("inputs are ", call.in(0).ToString(), " and ", depth,
                                     " times ", call.in(1).ToString(), " with ", batch,
                                     " batch dims");
            }
            LoopBody body;
            std::vector<Dim> extents = indices.dims();
            body.reads.resize(static_cast<size_t>(call.inputs()));
            for (int d = 0; d < data.rank(); ++d) {
              if (d < batch) {
                if (data.dim(d) != indices.dim(d)) {
                  return InvalidArgument("batch dim ", d, " is ", data.dim(d).ToString(), " and ",
                                         indices.dim(d).ToString());
                }
                body.reads[0].index.push_back(IndexExpr::Axis(d));
              } else if (d < batch + depth) {
                body.reads[0].index.push_back(IndexExpr::Indirect(d - batch + 1));
              } else {
                body.reads[0].index.push_back(IndexExpr::Axis(static_cast<int>(extents.size())));
                extents.push_back(data.dim(d));
              }
            }
            for (int i = 1; i <= depth; ++i) {
              if (call.in(i) != call.in(1) || call.dtype(i) != DType::kI64) {
                return InvalidArgument("input ", i, " is ", call.in(i).ToString(), ", expected i64",
                                       indices.ToString());
              }
              for (int d = 0; d < indices.rank(); ++d) {
                body.reads[static_cast<size_t>(i)].index.push_back(IndexExpr::Axis(d));
              }
            }
            body.axes = NumberedAxes(extents);
            for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
              body.write.push_back(IndexExpr::Axis(d));
            }
            body.value = call.In(0);
            return body;
          }};
}

}  // namespace fusion
