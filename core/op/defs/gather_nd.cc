#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y[b.., i.., r..] = data[b.., indices[b.., i.., 0], indices[b.., i.., 1], .., r..], with the
/// first `batch_dims` dims in common; negative indices count from the end
OpDef DefineGatherNd() {
  return {.name = "GatherND",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "batch_dims", .kind = ParamSpec::kInt}},
          .min_opset = 11,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 1));
            RETURN_IF_ERROR(call.CheckRankAtLeast(1, 1));
            if (call.dtype(1) != DType::kI64) {
              return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)), ", expected i64");
            }
            const Dim& columns = call.shape(1).dim(call.shape(1).rank() - 1);
            const int64_t batch = call.attrs().Int("batch_dims", 0);
            const int rank = call.shape(0).rank();
            if (!columns.is_static()) {
              return Unimplemented("indices of the symbolic dim ", columns.ToString());
            }
            if (batch < 0 || batch >= call.shape(1).rank() || batch > rank || columns.value() < 1 ||
                columns.value() > std::min<int64_t>(rank - batch, kMaxGatherColumns)) {
              return InvalidArgument("indices are ", call.in(1).ToString(), " with ", batch,
                                     " batch dims, expected 1 to ",
                                     std::min<int64_t>(rank - batch, kMaxGatherColumns),
                                     " columns for input 0 ", call.in(0).ToString());
            }
            std::vector<Decomposition::Value> inputs = {d.in(0)};
            for (int64_t c = 0; c < columns.value(); ++c) {
              HostTensor at(DType::kI64, {});
              at.SetInt(0, c);
              ASSIGN_OR_RETURN(auto column, d.Apply("Gather", {d.in(1), d.Constant(std::move(at))},
                                                    {{"axis", int64_t{-1}}}));
              inputs.push_back(column);
            }
            return d.Apply("GatherAt", std::move(inputs), {{"batch_dims", batch}});
          }};
}

}  // namespace fusion
