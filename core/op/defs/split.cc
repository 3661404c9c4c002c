#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

namespace {

absl::StatusOr<std::vector<int64_t>> PartSizes(const OpCall& call, int axis) {
  std::vector<int64_t> sizes = call.attrs().Ints("split");
  const Dim& extent = call.shape(0).dim(axis);
  if (!extent.is_static()) return Unimplemented("split of the symbolic dim ", extent.ToString());
  int64_t total = extent.value();
  if (!call.attrs().Has("split")) {
    int64_t parts = call.attrs().Int("num_outputs", call.outputs());
    if (parts != call.outputs()) {
      return InvalidArgument("num_outputs is ", parts, ", the node has ", call.outputs(),
                             " outputs");
    }
    int64_t size = (total + parts - 1) / parts;  // the last part may be smaller
    for (int64_t begin = 0; static_cast<int64_t>(sizes.size()) < parts; begin += size) {
      sizes.push_back(std::clamp<int64_t>(total - begin, 0, size));
    }
  }
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > total - sum) {
      return InvalidArgument("split [", StrJoin(sizes, ","), "] has a part outside of 0..",
                             total - sum, ", what is left of dim ", axis);
    }
    sum += size;
  }
  if (sum != total) {
    return InvalidArgument("split [", StrJoin(sizes, ","), "] sums to ", sum, ", dim ", axis,
                           " has extent ", total);
  }
  return sizes;
}

}  // namespace

/// y_i = the i-th part of x along `axis`
OpDef DefineSplit() {
  return {.name = "Split",
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "split", .kind = ParamSpec::kInts, .onnx_input = 1},
                     {.name = "num_outputs", .kind = ParamSpec::kInt}},
          .min_opset = 2,
          .outputs = [](const OpCall& call) -> absl::StatusOr<int> {
            if (!call.attrs().Has("split")) return call.outputs();
            return static_cast<int>(call.attrs().Ints("split").size());
          },
          .body = [](const OpCall& call, int output) -> absl::StatusOr<LoopBody> {
            int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), rank));
            ASSIGN_OR_RETURN(std::vector<int64_t> sizes, PartSizes(call, axis));
            int64_t begin = 0;
            for (int i = 0; i < output; ++i) begin += sizes[static_cast<size_t>(i)];
            std::vector<Dim> extents = call.shape(0).dims();
            extents[static_cast<size_t>(axis)] = sizes[static_cast<size_t>(output)];
            IndexMap index;
            for (int d = 0; d < rank; ++d) {
              index.push_back(IndexExpr::Axis(d) + IndexExpr(d == axis ? begin : 0));
            }
            return ViewBody(call, extents, std::move(index));
          }};
}

}  // namespace fusion
