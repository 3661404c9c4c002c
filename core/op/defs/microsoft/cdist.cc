#include "core/op/forms.h"

namespace fusion {

/// y[i,j] = the sum over k of (a[i,k] - b[j,k])^2 or, with metric "euclidean", its root
OpDef DefineMicrosoftCdist() {
  return {.name = "com.microsoft.CDist",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "metric", .kind = ParamSpec::kString}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckFloat(call, 0));
            const auto* metric = call.attrs().Find<std::string>("metric");
            const bool root = metric != nullptr && *metric == "euclidean";
            if (metric != nullptr && !root && *metric != "sqeuclidean") {
              return Unimplemented("attribute \"metric\" is ", QuoteShort(*metric),
                                   "; supported: euclidean, sqeuclidean");
            }
            if (call.shape(0).rank() != 2 || call.shape(1).rank() != 2 ||
                call.shape(0).dim(1) != call.shape(1).dim(1)) {
              return InvalidArgument("inputs are ", call.in(0).ToString(), " and ",
                                     call.in(1).ToString(), ", expected [m, k] and [n, k]");
            }
            ASSIGN_OR_RETURN(auto a, d.Apply("Unsqueeze", {d.in(0)}, {{"axes", Dims{1}}}));
            ASSIGN_OR_RETURN(auto b, d.Apply("Unsqueeze", {d.in(1)}, {{"axes", Dims{0}}}));
            ASSIGN_OR_RETURN(auto y, d.Apply("Sub", {a, b}));
            ASSIGN_OR_RETURN(
                y, d.Apply("ReduceSumSquare", {y}, {{"axes", Dims{2}}, {"keepdims", int64_t{0}}}));
            return root ? d.Apply("Sqrt", {y}) : y;
          }};
}

}  // namespace fusion
