#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// How a window slides over one spatial dim, for ONNX's Conv and pools. All in elements.
struct Window {
  int64_t extent = 0;  // of the input, without padding
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  /// Number of windows; each gives one output element.
  int64_t count = 0;
  /// Number of elements after the input that windows cover. It is below pad_end if no window
  /// reaches the end of the padding, and above it if the last window of a ceil_mode pool extends
  /// beyond.
  int64_t fill_end = 0;

  /// Distance from the first to the last element of a window, both included.
  int64_t span() const { return (kernel - 1) * dilation + 1; }
  bool operator==(const Window&) const = default;
};

/// The windows over the spatial dims of input 0 (all after batch and channel), from the extents
/// `kernel` and the optional attributes auto_pad, strides, dilations, pads and ceil_mode.
/// InvalidArgument, naming the attribute, if they do not fit; Unimplemented for a symbolic spatial
/// dim.
absl::StatusOr<std::vector<Window>> WindowsOf(const OpCall& call,
                                              const std::vector<int64_t>& kernel);
/// The same, with the extents of the kernel from attribute kernel_shape (pools).
absl::StatusOr<std::vector<Window>> PoolWindowsOf(const OpCall& call);

/// How ConvTranspose spreads each element along one spatial dim over a window of the output.
struct SpreadWindow {
  int64_t extent = 0;  // of the input
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  /// Number of elements, of the union of all windows, that are dropped before the output begins.
  int64_t cut_begin = 0;
  /// Extent of the output. Elements after the last window are 0.
  int64_t count = 0;
};

/// The windows of a ConvTranspose, from the attributes of WindowsOf except ceil_mode, and from
/// output_padding and output_shape. Errors as WindowsOf.
absl::StatusOr<std::vector<SpreadWindow>> SpreadWindowsOf(const OpCall& call,
                                                          const std::vector<int64_t>& kernel);

/// The attributes auto_pad, dilations, kernel_shape, pads and strides. ceil_mode is not included.
std::vector<ParamSpec> WindowParams();

/// Pads the spatial dims of `x` with the constant `value` by pad_begin and fill_end of `windows`;
/// `x` itself if no padding is needed.
absl::StatusOr<Decomposition::Value> FillAround(Decomposition& d, Decomposition::Value x,
                                                const std::vector<Window>& windows,
                                                const Expr& value);

/// The attributes "strides" and "dilations" of the windows, for steps on a padded input (SlidesOf).
AttrMap StrideAttrs(const std::vector<Window>& windows);

/// A window that slides over one dim without padding.
struct Slide {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t count = 0;  // number of windows
};

/// The windows of extents `kernel` over the last kernel.size() dims of input 0, from the attributes
/// "strides" and "dilations" (absent: 1). Errors as WindowsOf.
absl::StatusOr<std::vector<Slide>> SlidesOf(const OpCall& call, const std::vector<int64_t>& kernel);

/// Append an axis for each slide and return the axis numbers. AppendOutputAxes: over the windows
/// ("ow"; "oh", "ow"; ...), also appended to `body->write`. AppendKernelAxes: over the elements of
/// a window ("kw", ...).
std::vector<int> AppendOutputAxes(const std::vector<Slide>& slides, LoopBody* body);
std::vector<int> AppendKernelAxes(const std::vector<Slide>& slides, LoopBody* body);
/// For each slide the index stride * output axis + dilation * kernel axis that it reads.
IndexMap SlideIndex(const std::vector<Slide>& slides, const std::vector<int>& output,
                    const std::vector<int>& kernel);

}  // namespace fusion
