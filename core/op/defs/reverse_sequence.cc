#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y = x with the first lens[b] elements along `time_axis` of each sequence b, counted along
/// `batch_axis`, in the opposite order; the two are the first two dims
OpDef DefineReverseSequence() {
  return {.name = "ReverseSequence",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "batch_axis", .kind = ParamSpec::kInt},
                     {.name = "time_axis", .kind = ParamSpec::kInt}},
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 2));
            const int64_t batch = call.attrs().Int("batch_axis", 1);
            const int64_t time = call.attrs().Int("time_axis", 0);
            if (std::min(batch, time) != 0 || std::max(batch, time) != 1) {
              return InvalidArgument("attributes \"batch_axis\" and \"time_axis\" are ", batch,
                                     " and ", time, ", expected 0 and 1 or 1 and 0");
            }
            const Shape& x = call.shape(0);
            const Dim& steps = x.dim(static_cast<int>(time));
            const Dim& sequences = x.dim(static_cast<int>(batch));
            if (call.in(1) != TensorType{DType::kI64, Shape({sequences})}) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected i64[",
                                     sequences.ToString(), "]");
            }
            if (!steps.is_static()) {
              return Unimplemented("the symbolic dim ", steps.ToString(), " along time");
            }
            ASSIGN_OR_RETURN(auto t, CountTo(d, steps.value()));
            ASSIGN_OR_RETURN(t, d.Apply("Unsqueeze", {t}, {{"axes", Dims{batch}}}));
            ASSIGN_OR_RETURN(auto length, d.Apply("Unsqueeze", {d.in(1)}, {{"axes", Dims{time}}}));
            ASSIGN_OR_RETURN(auto mirrored, d.Apply("Sub", {length, d.Scalar(DType::kI64, 1)}));
            ASSIGN_OR_RETURN(mirrored, d.Apply("Sub", {mirrored, t}));
            ASSIGN_OR_RETURN(auto inside, d.Apply("Less", {t, length}));
            ASSIGN_OR_RETURN(auto from, d.Apply("Where", {inside, mirrored, t}));
            Dims rest;
            for (int i = 2; i < x.rank(); ++i) rest.push_back(i);
            if (!x.is_static()) {
              return Unimplemented("input 0 ", call.in(0).ToString(), ": a symbolic dim");
            }
            if (!rest.empty()) {
              ASSIGN_OR_RETURN(from, d.Apply("Unsqueeze", {from}, {{"axes", rest}}));
            }
            ASSIGN_OR_RETURN(from, d.Apply("Expand", {from}, {{"shape", x.ToDims()}}));
            return d.Apply("GatherElements", {d.in(0), from}, {{"axis", time}});
          }};
}

}  // namespace fusion
