#include "core/op/forms/windows.h"

#include <algorithm>

namespace fusion {
namespace {

// Far above the needs of models; a product of two fits in 64 bits.
constexpr int64_t kMaxStep = int64_t{1} << 24;

// Attribute `name`, one number per spatial dim; `fallback` each if it is absent.
absl::StatusOr<std::vector<int64_t>> PerDim(const OpCall& call, std::string_view name, size_t dims,
                                            int64_t least, int64_t fallback) {
  if (!call.attrs().Has(name)) return std::vector<int64_t>(dims, fallback);
  std::vector<int64_t> values = call.attrs().Ints(name);
  if (values.size() != dims) {
    return InvalidArgument("attribute ", Quote(name), " has ", values.size(), " entries, expected ",
                           dims);
  }
  for (int64_t v : values) {
    if (v < least || v > kMaxStep) {
      return InvalidArgument("attribute ", Quote(name), " [", StrJoin(values, ","),
                             "] has the entry ", v, ", expected ", least, "..", kMaxStep);
    }
  }
  return values;
}

enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };

absl::StatusOr<AutoPad> AutoPadOf(const OpCall& call) {
  const auto* text = call.attrs().Find<std::string>("auto_pad");
  if (text == nullptr || *text == "NOTSET" || text->empty()) return AutoPad::kNotSet;
  if (*text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (*text == "SAME_LOWER") return AutoPad::kSameLower;
  if (*text == "VALID") return AutoPad::kValid;
  return InvalidArgument("attribute \"auto_pad\" is ", QuoteShort(*text),
                         ", expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
}

// auto_pad SAME: the output extent is ceil(input / stride); the needed padding is split over both
// sides.
void PadToSame(bool upper, Window* w) {
  w->count = (w->extent + w->stride - 1) / w->stride;
  if (w->count == 0) return;  // nothing to pad
  int64_t total = std::max<int64_t>((w->count - 1) * w->stride + w->span() - w->extent, 0);
  w->pad_begin = upper ? total / 2 : total - total / 2;
  w->pad_end = total - w->pad_begin;
}

// Extents, steps and, without auto_pad, pads as the attributes say them; not yet counted.
absl::StatusOr<std::vector<Window>> GivenWindows(const OpCall& call,
                                                 const std::vector<int64_t>& kernel,
                                                 AutoPad auto_pad) {
  size_t dims = kernel.size();
  const Shape& shape = call.shape(0);
  if (shape.rank() != static_cast<int>(dims) + 2) {
    return InvalidArgument("input 0 ", call.in(0).ToString(), " has rank ", shape.rank(),
                           ", expected ", dims + 2, ": batch, channel and ", dims,
                           " spatial dims of the kernel");
  }
  ASSIGN_OR_RETURN(auto strides, PerDim(call, "strides", dims, 1, 1));
  ASSIGN_OR_RETURN(auto dilations, PerDim(call, "dilations", dims, 1, 1));
  ASSIGN_OR_RETURN(auto pads, PerDim(call, "pads", 2 * dims, 0, 0));
  std::vector<Window> windows;
  for (size_t d = 0; d < dims; ++d) {
    const Dim& extent = shape.dim(static_cast<int>(d) + 2);
    if (!extent.is_static()) {
      return Unimplemented("windows over the symbolic dim ", extent.ToString(), " of ",
                           shape.ToString());
    }
    if (kernel[d] < 1 || kernel[d] > kMaxStep) {
      return InvalidArgument("kernel [", StrJoin(kernel, ","), "] has the extent ", kernel[d],
                             ", expected 1..", kMaxStep);
    }
    const bool padded = auto_pad == AutoPad::kNotSet;
    windows.push_back({.extent = extent.value(),
                       .kernel = kernel[d],
                       .stride = strides[d],
                       .dilation = dilations[d],
                       .pad_begin = padded ? pads[d] : 0,
                       .pad_end = padded ? pads[d + dims] : 0});
  }
  return windows;
}

absl::Status CountWindows(bool ceil_mode, size_t dim, Window* w) {
  int64_t room = w->extent + w->pad_begin + w->pad_end - w->span();
  if (room < 0) {
    return InvalidArgument("a window of ", w->span(), " elements does not fit into spatial dim ",
                           dim, " of extent ", w->extent, " with ", w->pad_begin, " + ", w->pad_end,
                           " padding");
  }
  w->count = room / w->stride + 1;
  bool more = ceil_mode && room % w->stride != 0;
  // A window that starts after the input and its begin padding is dropped.
  if (more && w->count * w->stride < w->extent + w->pad_begin) ++w->count;
  return absl::OkStatus();
}

// "w" | "h", "w" | "d", "h", "w" | "0", "1", ...
std::string SpatialName(size_t d, size_t dims) {
  static constexpr std::string_view kNames[] = {"d", "h", "w"};
  return dims <= 3 ? std::string(kNames[3 - dims + d]) : StrCat(d);
}

std::vector<int> AppendAxes(std::string_view prefix, const std::vector<int64_t>& extents,
                            LoopBody* body) {
  std::vector<int> axes;
  for (size_t d = 0; d < extents.size(); ++d) {
    axes.push_back(static_cast<int>(body->axes.size()));
    body->axes.push_back({StrCat(prefix, SpatialName(d, extents.size())), Dim(extents[d])});
  }
  return axes;
}

}  // namespace

absl::StatusOr<std::vector<Window>> WindowsOf(const OpCall& call,
                                              const std::vector<int64_t>& kernel) {
  ASSIGN_OR_RETURN(AutoPad auto_pad, AutoPadOf(call));
  ASSIGN_OR_RETURN(std::vector<Window> windows, GivenWindows(call, kernel, auto_pad));
  for (size_t d = 0; d < windows.size(); ++d) {
    Window& w = windows[d];
    if (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower) {
      PadToSame(auto_pad == AutoPad::kSameUpper, &w);
    } else {
      RETURN_IF_ERROR(CountWindows(call.attrs().Int("ceil_mode", 0) != 0, d, &w));
    }
    int64_t covered = w.count == 0 ? 0 : (w.count - 1) * w.stride + w.span();
    w.fill_end = std::max<int64_t>(covered - w.extent - w.pad_begin, 0);
  }
  return windows;
}

absl::StatusOr<std::vector<SpreadWindow>> SpreadWindowsOf(const OpCall& call,
                                                          const std::vector<int64_t>& kernel) {
  ASSIGN_OR_RETURN(AutoPad auto_pad, AutoPadOf(call));
  ASSIGN_OR_RETURN(std::vector<Window> given, GivenWindows(call, kernel, auto_pad));
  ASSIGN_OR_RETURN(auto more, PerDim(call, "output_padding", given.size(), 0, 0));
  // Some exporters name batch and channel too.
  const std::vector<int64_t> named = call.attrs().Ints("output_shape");
  const size_t front = named.size() == given.size() + 2 ? 2 : 0;
  if (!named.empty() && named.size() - front != given.size()) {
    return InvalidArgument("attribute \"output_shape\" has ", named.size(), " entries, expected ",
                           given.size());
  }
  const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
  std::vector<SpreadWindow> windows;
  for (size_t d = 0; d < given.size(); ++d) {
    const Window& w = given[d];
    SpreadWindow out = {.extent = w.extent,
                        .kernel = w.kernel,
                        .stride = w.stride,
                        .dilation = w.dilation,
                        .cut_begin = w.pad_begin,
                        .count = 0};
    if (w.extent > kMaxExtent / w.stride) {
      return InvalidArgument("spatial dim ", d, " of extent ", w.extent, " times stride ", w.stride,
                             ": more than ", kMaxExtent, " elements");
    }
    const int64_t all = (w.extent - 1) * w.stride + more[d] + w.span();
    out.count = all - w.pad_begin - w.pad_end;
    if (same) out.count = w.extent * w.stride;
    if (!named.empty()) out.count = named[d + front];
    if (out.count < 0 || out.count > kMaxExtent) {
      return InvalidArgument("spatial dim ", d, " of the output gets the extent ", out.count,
                             ", expected 0..", kMaxExtent);
    }
    if (!named.empty() || same) {
      const int64_t cut = std::max<int64_t>(all - out.count, 0);
      out.cut_begin = auto_pad == AutoPad::kSameUpper ? cut / 2 : cut - cut / 2;
    }
    windows.push_back(out);
  }
  return windows;
}

absl::StatusOr<std::vector<Window>> PoolWindowsOf(const OpCall& call) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
  std::vector<int64_t> kernel = call.attrs().Ints("kernel_shape");
  if (static_cast<int>(kernel.size()) != call.shape(0).rank() - 2) {
    return InvalidArgument("attribute \"kernel_shape\" has ", kernel.size(), " entries, input 0 ",
                           call.in(0).ToString(), " has ", call.shape(0).rank() - 2,
                           " spatial dims");
  }
  return WindowsOf(call, kernel);
}

std::vector<ParamSpec> WindowParams() {
  return {{.name = "auto_pad", .kind = ParamSpec::kString},
          {.name = "dilations", .kind = ParamSpec::kInts},
          {.name = "kernel_shape", .kind = ParamSpec::kInts},
          {.name = "pads", .kind = ParamSpec::kInts},
          {.name = "strides", .kind = ParamSpec::kInts}};
}

absl::StatusOr<Decomposition::Value> FillAround(Decomposition& d, Decomposition::Value x,
                                                const std::vector<Window>& windows,
                                                const Expr& value) {
  std::vector<int64_t> pads(2, 0);
  bool any = false;
  for (const Window& w : windows) pads.push_back(w.pad_begin);
  pads.insert(pads.end(), 2, 0);
  for (const Window& w : windows) {
    pads.push_back(w.fill_end);
    any |= w.pad_begin > 0 || w.fill_end > 0;
  }
  if (!any) return x;
  HostTensor fill(d.type(x).dtype, {});
  if (IsFloat(fill.dtype())) {
    fill.SetDouble(0, value.value());
  } else {
    fill.SetInt(0, value.integer());
  }
  return d.Apply("PadConstant", {x},
                 {{"pads", pads}, {"value", std::make_shared<const HostTensor>(std::move(fill))}});
}

AttrMap StrideAttrs(const std::vector<Window>& windows) {
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  for (const Window& w : windows) {
    strides.push_back(w.stride);
    dilations.push_back(w.dilation);
  }
  return {{"strides", strides}, {"dilations", dilations}};
}

absl::StatusOr<std::vector<Slide>> SlidesOf(const OpCall& call,
                                            const std::vector<int64_t>& kernel) {
  size_t dims = kernel.size();
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, static_cast<int>(dims)));
  ASSIGN_OR_RETURN(auto strides, PerDim(call, "strides", dims, 1, 1));
  ASSIGN_OR_RETURN(auto dilations, PerDim(call, "dilations", dims, 1, 1));
  std::vector<Slide> slides;
  for (size_t d = 0; d < dims; ++d) {
    int at = call.shape(0).rank() - static_cast<int>(dims) + static_cast<int>(d);
    const Dim& extent = call.shape(0).dim(at);
    if (!extent.is_static()) {
      return Unimplemented("windows over the symbolic dim ", extent.ToString());
    }
    Window w{.extent = extent.value(),
             .kernel = kernel[d],
             .stride = strides[d],
             .dilation = dilations[d]};
    // WindowsOf rejected windows that do not fit; only an empty dim with auto_pad remains.
    if (w.extent >= w.span()) RETURN_IF_ERROR(CountWindows(/*ceil_mode=*/false, d, &w));
    slides.push_back({w.kernel, w.stride, w.dilation, w.count});
  }
  return slides;
}

std::vector<int> AppendOutputAxes(const std::vector<Slide>& slides, LoopBody* body) {
  std::vector<int64_t> extents;
  for (const Slide& s : slides) extents.push_back(s.count);
  std::vector<int> axes = AppendAxes("o", extents, body);
  for (int axis : axes) body->write.push_back(IndexExpr::Axis(axis));
  return axes;
}

std::vector<int> AppendKernelAxes(const std::vector<Slide>& slides, LoopBody* body) {
  std::vector<int64_t> extents;
  for (const Slide& s : slides) extents.push_back(s.kernel);
  return AppendAxes("k", extents, body);
}

IndexMap SlideIndex(const std::vector<Slide>& slides, const std::vector<int>& output,
                    const std::vector<int>& kernel) {
  IndexMap index;
  for (size_t d = 0; d < slides.size(); ++d) {
    index.push_back(IndexExpr::Axis(output[d], slides[d].stride) +
                    IndexExpr::Axis(kernel[d], slides[d].dilation));
  }
  return index;
}

}  // namespace fusion
