#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y = x with dims of extent 1 inserted at `axes` (positions in the output)
OpDef DefineUnsqueeze() {
  return {.name = "Unsqueeze",
          .params = {{.name = "axes", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true}},
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const auto& named = *call.attrs().Find<std::vector<int64_t>>("axes");
            int rank = call.shape(0).rank() + static_cast<int>(named.size());
            ASSIGN_OR_RETURN(std::vector<int> axes, call.NormaliseAxes(named, rank));
            std::vector<Dim> extents;
            IndexMap index;
            for (int d = 0; d < rank; ++d) {
              if (std::binary_search(axes.begin(), axes.end(), d)) {
                extents.emplace_back(1);
              } else {
                extents.push_back(call.shape(0).dim(static_cast<int>(index.size())));
                index.push_back(IndexExpr::Axis(d));
              }
            }
            return ViewBody(call, extents, std::move(index));
          }};
}

}  // namespace fusion
