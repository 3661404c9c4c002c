#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y = x without the dims of extent 1 named by `axes` (absent: all of them)
OpDef DefineSqueeze() {
  return {.name = "Squeeze",
          .params = {{.name = "axes", .kind = ParamSpec::kInts, .onnx_input = 1}},
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(std::vector<int> axes,
                             call.NormaliseAxes(call.attrs().Ints("axes"), rank));
            bool all = !call.attrs().Has("axes");
            std::vector<Dim> extents;
            IndexMap index;
            for (int d = 0; d < rank; ++d) {
              const Dim& extent = call.shape(0).dim(d);
              bool named = std::binary_search(axes.begin(), axes.end(), d);
              if (named && extent != Dim(1)) {
                return InvalidArgument("axis ", d, " of ", call.in(0).ToString(), " has extent ",
                                       extent.ToString(), ", expected 1");
              }
              if (named || (all && extent == Dim(1))) {
                index.emplace_back(0);
              } else {
                index.push_back(IndexExpr::Axis(static_cast<int>(extents.size())));
                extents.push_back(extent);
              }
            }
            return ViewBody(call, extents, std::move(index));
          }};
}

}  // namespace fusion
