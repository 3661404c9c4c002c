#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y = x broadcast to the shape that x and `shape` broadcast to
OpDef DefineExpand() {
  return {.name = "Expand",
          .params = {{.name = "shape",
                      .kind = ParamSpec::kInts,
                      .onnx_input = 1,
                      .required = true,
                      .any_integer = true}},
          .min_opset = 8,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const auto& wanted = *call.attrs().Find<std::vector<int64_t>>("shape");
            const Shape& from = call.shape(0);
            int rank = std::max(from.rank(), static_cast<int>(wanted.size()));
            std::vector<Dim> extents;
            IndexMap index;
            for (int d = 0; d < rank; ++d) {
              int in = d - (rank - from.rank());
              int out = d - (rank - static_cast<int>(wanted.size()));
              Dim have = in >= 0 ? from.dim(in) : Dim(1);
              Dim want = out >= 0 ? Dim(wanted[static_cast<size_t>(out)]) : Dim(1);
              if (have != want && have != Dim(1) && want != Dim(1)) {
                return InvalidArgument("cannot expand ", from.ToString(), " to [",
                                       StrJoin(wanted, ","), "]");
              }
              Dim extent = have == Dim(1) ? want : have;
              if (extent.is_static() && extent.value() < 0) {
                return InvalidArgument("shape [", StrJoin(wanted, ","), "] has a negative extent");
              }
              if (in >= 0) index.push_back(have == extent ? IndexExpr::Axis(d) : IndexExpr(0));
              extents.push_back(extent);
            }
            return ViewBody(call, extents, std::move(index));
          }};
}

}  // namespace fusion
