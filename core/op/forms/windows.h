#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// How a window slides over one spatial dim, as Conv and the pools of ONNX say it.
struct Window {
  int64_t extent = 0;  // of the input, without padding
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  /// Windows, one output element each.
  int64_t count = 0;
  /// Elements behind the input that some window covers: at most pad_end, or more if the last window
  /// of a ceil_mode pool hangs over the padding. What of pad_end no window reaches is left out.
  int64_t fill_end = 0;

  /// Elements from the first to the last of a window.
  int64_t span() const { return (kernel - 1) * dilation + 1; }
  bool operator==(const Window&) const = default;
};

/// The windows over the dims of input 0 behind batch and channel, from the attributes auto_pad,
/// strides, dilations, pads and ceil_mode (all optional) and the kernel's extents. InvalidArgument,
/// naming the attribute, for what contradicts itself; Unimplemented for a symbolic spatial dim.
absl::StatusOr<std::vector<Window>> WindowsOf(const OpCall& call,
                                              const std::vector<int64_t>& kernel);
/// The same with the kernel's extents from attribute kernel_shape, as the pools say them.
absl::StatusOr<std::vector<Window>> PoolWindowsOf(const OpCall& call);

/// How ConvTranspose spreads each element of one spatial dim over a window of the output.
struct SpreadWindow {
  int64_t extent = 0;  // of the input
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  /// Elements of all windows together that are cut off before the first element of the output.
  int64_t cut_begin = 0;
  /// Elements of the output. Those behind all windows are 0.
  int64_t count = 0;
};

/// The same attributes as WindowsOf reads, but ceil_mode, and output_padding and output_shape, as
/// ConvTranspose means them.
absl::StatusOr<std::vector<SpreadWindow>> SpreadWindowsOf(const OpCall& call,
                                                          const std::vector<int64_t>& kernel);

/// The attributes WindowsOf reads and kernel_shape.
std::vector<ParamSpec> WindowParams();

/// `x` with what the windows cover before and behind the spatial dims filled with the constant
/// `value`; `x` itself if they cover nothing.
absl::StatusOr<Decomposition::Value> FillAround(Decomposition& d, Decomposition::Value x,
                                                const std::vector<Window>& windows,
                                                const Expr& value);

/// {"strides", "dilations"} of the windows, for the steps that slide over an input without padding.
AttrMap StrideAttrs(const std::vector<Window>& windows);

/// A window sliding over one dim that needs no padding.
struct Slide {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t count = 0;
};

/// The windows of kernels of these extents over the last dims of input 0, from the attributes
/// "strides" and "dilations" (absent: 1).
absl::StatusOr<std::vector<Slide>> SlidesOf(const OpCall& call, const std::vector<int64_t>& kernel);

/// Appends an axis for each slide: "ow", "oh" and "ow", ... over the windows (and to
/// `body->write`), or "kw", ... over the elements of a window.
std::vector<int> AppendOutputAxes(const std::vector<Slide>& slides, LoopBody* body);
std::vector<int> AppendKernelAxes(const std::vector<Slide>& slides, LoopBody* body);
/// stride * output + dilation * kernel: where each slide reads.
IndexMap SlideIndex(const std::vector<Slide>& slides, const std::vector<int>& output,
                    const std::vector<int>& kernel);

}  // namespace fusion
