#include "core/op/forms.h"

namespace fusion {

/// The elements of x along its last dim that input 1 names; of a list, as one row
OpDef DefineMlArrayFeatureExtractor() {
  return {.name = "ai.onnx.ml.ArrayFeatureExtractor",
          .min_inputs = 2,
          .max_inputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 1));
            ASSIGN_OR_RETURN(Dims at, StaticDims(call, 1));
            if (call.dtype(1) != DType::kI64 || at.empty()) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(),
                                     ", expected i64 of rank 1 at least");
            }
            const int64_t count = NumElements(at);
            ASSIGN_OR_RETURN(
                auto index,
                d.Apply("Reshape", {d.in(1)}, {{"shape", Dims{count}}, {"allowzero", int64_t{1}}}));
            ASSIGN_OR_RETURN(auto y, d.Apply("Gather", {d.in(0), index}, {{"axis", int64_t{-1}}}));
            if (call.shape(0).rank() > 1) return y;
            return d.Apply("Unsqueeze", {y}, {{"axes", Dims{0}}});
          }};
}

}  // namespace fusion
