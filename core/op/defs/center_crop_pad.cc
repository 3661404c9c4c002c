#include "core/op/forms.h"

namespace fusion {

/// y = the middle of x along `axes` (absent: all), or x with zeros around it, so that the extents
/// are `shape` (a constant); of an odd difference the smaller half is before
OpDef DefineCenterCropPad() {
  return {
      .name = "CenterCropPad",
      .params = {{.name = "shape", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true},
                 {.name = "axes", .kind = ParamSpec::kInts}},
      .min_opset = 18,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        const int rank = call.shape(0).rank();
        const Dims wanted = call.attrs().Ints("shape");
        Dims axes = call.attrs().Ints("axes");
        if (!call.attrs().Has("axes")) {
          for (int i = 0; i < rank; ++i) axes.push_back(i);
        }
        RETURN_IF_ERROR(call.NormaliseAxes(axes, rank).status());
        if (wanted.size() != axes.size()) {
          return InvalidArgument("shape has ", wanted.size(), " entries, expected ", axes.size());
        }
        Dims pads(2 * static_cast<size_t>(rank), 0);
        for (size_t i = 0; i < axes.size(); ++i) {
          ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(axes[i], rank));
          const Dim& extent = call.shape(0).dim(axis);
          if (!extent.is_static()) {
            return Unimplemented("the middle of the symbolic dim ", extent.ToString());
          }
          if (wanted[i] < 0 || wanted[i] > kMaxExtent) {
            return InvalidArgument("shape has the entry ", wanted[i], ", expected 0..", kMaxExtent);
          }
          const int64_t more = wanted[i] - extent.value();
          const auto at = static_cast<size_t>(axis);
          pads[at] = more / 2;
          pads[at + static_cast<size_t>(rank)] = more - more / 2;
        }
        return d.Apply("Pad", {d.in(0)}, {{"pads", pads}});
      }};
}

}  // namespace fusion
