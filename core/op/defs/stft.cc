#include "core/op/forms.h"
#include "core/op/indexed/signal.h"

namespace fusion {

namespace {

// Elements of a frame: those of the window, as many as `frame_length` says, or all.
absl::StatusOr<int64_t> FrameLength(const OpCall& call) {
  const Dim& all = call.shape(0).dim(1);
  if (!all.is_static()) {
    return Unimplemented("frames along the symbolic dim ", all.ToString(), " of input 0 ",
                         call.in(0).ToString());
  }
  int64_t length = all.value();
  if (call.has_input(1)) {
    if (call.shape(1).rank() != 1) {
      return InvalidArgument("window is ", call.in(1).ToString(), ", expected one dim");
    }
    const Dim& window = call.shape(1).dim(0);
    if (!window.is_static()) return Unimplemented("a window of ", window.ToString(), " elements");
    length = window.value();
  }
  const int64_t given = call.attrs().Int("frame_length", length);
  if (call.has_input(1) && given != length) {
    return InvalidArgument("frame_length is ", given, ", the window has ", length, " elements");
  }
  if (given < 1 || given > all.value()) {
    return InvalidArgument("frames have ", given, " elements, expected 1..", all.value(),
                           ", the length of the signal");
  }
  return given;
}

}  // namespace

/// y[b, f, k, :] = the Fourier transform (DFT) of window * frame f of the signal; frames begin
/// `frame_step` apart, a constant, as is their length. With `onesided`, the default, only the first
/// half of the results.
OpDef DefineStft() {
  return {
      .name = "STFT",
      .max_inputs = 2,
      .params = {{.name = "frame_step", .kind = ParamSpec::kInt, .onnx_input = 1, .required = true},
                 {.name = "frame_length", .kind = ParamSpec::kInt, .onnx_input = 3},
                 {.name = "onesided", .kind = ParamSpec::kInt}},
      .min_opset = 17,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        RETURN_IF_ERROR(CheckFloat(call, 0));
        if (call.shape(0).rank() != 3) {
          return InvalidArgument("input 0 is ", call.in(0).ToString(),
                                 ", expected batch, signal and its parts");
        }
        const int64_t step = call.attrs().Int("frame_step", 0);
        if (step < 1 || step > kMaxExtent) {
          return InvalidArgument("frame_step is ", step, ", expected 1..", kMaxExtent);
        }
        ASSIGN_OR_RETURN(const int64_t length, FrameLength(call));
        ASSIGN_OR_RETURN(auto frames,
                         d.Apply("Frames", {d.in(0)}, {{"length", length}, {"step", step}}));
        if (call.has_input(1)) {
          RETURN_IF_ERROR(call.CheckSameType(0, 1));
          ASSIGN_OR_RETURN(auto window, d.Apply("Unsqueeze", {d.in(1)}, {{"axes", Dims{1}}}));
          ASSIGN_OR_RETURN(frames, d.Apply("Mul", {frames, window}));
        }
        return Transformed(
            d, frames,
            {.length = length, .onesided = call.attrs().Int("onesided", 1) != 0, .inverse = false});
      }};
}

}  // namespace fusion
