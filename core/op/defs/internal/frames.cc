#include "core/op/forms.h"

namespace fusion {

/// y[.., f, t, c] = x[.., f * step + t, c]: all runs of `length` elements along the second to last
/// dim that begin `step` apart
OpDef DefineFrames() {
  return {.name = "Frames",
          .params = {{.name = "length", .kind = ParamSpec::kInt, .required = true},
                     {.name = "step", .kind = ParamSpec::kInt, .required = true}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 2));
            const int axis = call.shape(0).rank() - 2;
            const Dim& extent = call.shape(0).dim(axis);
            if (!extent.is_static()) {
              return Unimplemented("frames along the symbolic dim ", extent.ToString());
            }
            const int64_t length = call.attrs().Int("length", 0);
            const int64_t step = call.attrs().Int("step", 0);
            if (length < 1 || length > extent.value()) {
              return InvalidArgument("the length of a frame is ", length, ", expected 1..",
                                     extent.value());
            }
            if (step < 1 || step > kMaxExtent) {
              return InvalidArgument("frames are ", step, " apart, expected 1..", kMaxExtent);
            }
            std::vector<Dim> extents = call.shape(0).dims();
            extents[static_cast<size_t>(axis)] = (extent.value() - length) / step + 1;
            extents.insert(extents.begin() + axis + 1, Dim(length));
            IndexMap index;
            for (int d = 0; d < axis; ++d) index.push_back(IndexExpr::Axis(d));
            index.push_back(IndexExpr::Axis(axis, step) + IndexExpr::Axis(axis + 1));
            index.push_back(IndexExpr::Axis(axis + 2));
            return ViewBody(call, extents, std::move(index));
          }};
}

}  // namespace fusion
