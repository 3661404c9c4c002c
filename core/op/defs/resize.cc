#include <algorithm>
#include <cmath>
#include <limits>

#include "core/op/forms.h"
#include "core/op/forms/cropping.h"
#include "core/op/forms/resampling.h"

namespace fusion {

namespace {

// What Resize of opset 10 does, which had no attribute for it. No model can say it.
constexpr std::string_view kOldNearestMode = "floor_or_ceil";

template <typename T>
struct ResizeChoice {
  std::string_view name;
  T value;
};

constexpr ResizeChoice<ResampleFilter> kResizeFilters[] = {
    {"nearest", ResampleFilter::kNearest},
    {"linear", ResampleFilter::kLinear},
    {"cubic", ResampleFilter::kCubic},
};
constexpr ResizeChoice<ResampleCoordinates> kResizeCoordinates[] = {
    {"half_pixel", ResampleCoordinates::kHalfPixel},
    {"half_pixel_symmetric", ResampleCoordinates::kHalfPixelSymmetric},
    {"pytorch_half_pixel", ResampleCoordinates::kPytorchHalfPixel},
    {"align_corners", ResampleCoordinates::kAlignCorners},
    {"asymmetric", ResampleCoordinates::kAsymmetric},
    {"tf_crop_and_resize", ResampleCoordinates::kTfCropAndResize},
    {"tf_half_pixel_for_nn", ResampleCoordinates::kTfHalfPixelForNn},
};
constexpr ResizeChoice<ResampleRounding> kResizeRoundings[] = {
    {"round_prefer_floor", ResampleRounding::kRoundPreferFloor},
    {"round_prefer_ceil", ResampleRounding::kRoundPreferCeil},
    {"floor", ResampleRounding::kFloor},
    {"ceil", ResampleRounding::kCeil},
    {kOldNearestMode, ResampleRounding::kFloorOrCeil},
};
enum class AspectRatioPolicy { kStretch, kNotLarger, kNotSmaller };
constexpr ResizeChoice<AspectRatioPolicy> kAspectRatioPolicies[] = {
    {"stretch", AspectRatioPolicy::kStretch},
    {"not_larger", AspectRatioPolicy::kNotLarger},
    {"not_smaller", AspectRatioPolicy::kNotSmaller},
};

// What the attribute `name` says, the first choice if it is absent.
template <typename T, size_t n>
absl::StatusOr<T> ResizeAttr(const AttrMap& attrs, std::string_view name,
                             const ResizeChoice<T> (&choices)[n]) {
  const auto* given = attrs.Find<std::string>(name);
  if (given == nullptr) return choices[0].value;
  for (const ResizeChoice<T>& choice : choices) {
    if (choice.name == *given) return choice.value;
  }
  return InvalidArgument(
      "attribute ", Quote(name), " is ", QuoteShort(*given), ", expected one of ",
      StrJoin(choices, ", ", [](const ResizeChoice<T>& choice) { return choice.name; }));
}

// Opset 10 had the scales where the region is since, and fewer attributes.
absl::Status NormaliseResize(OnnxCall& call) {
  if (call.opset > 10) {
    const auto* nearest = call.attrs.Find<std::string>("nearest_mode");
    const auto* mode = call.attrs.Find<std::string>("coordinate_transformation_mode");
    if (nearest != nullptr && *nearest == kOldNearestMode) {
      return InvalidArgument("attribute \"nearest_mode\" is ", Quote(*nearest),
                             ", expected round_prefer_floor, round_prefer_ceil, floor or ceil");
    }
    if (call.opset > 12 && mode != nullptr && *mode == "tf_half_pixel_for_nn") {
      return InvalidArgument("attribute \"coordinate_transformation_mode\" is ", Quote(*mode),
                             ", which ends with opset 12");
    }
    return absl::OkStatus();
  }
  for (const auto& [name, value] : call.attrs) {
    if (name != "mode" && name != "roi" && name != "scales") {
      return InvalidArgument("unknown attribute ", Quote(name));
    }
  }
  if (call.attrs.Has("roi")) {
    call.attrs.Set("scales", *call.attrs.Find<std::vector<double>>("roi"));
    call.attrs.Erase("roi");
  }
  const auto* mode = call.attrs.Find<std::string>("mode");
  if (mode != nullptr && *mode != "nearest" && *mode != "linear") {
    return InvalidArgument("attribute \"mode\" is ", QuoteShort(*mode),
                           ", expected nearest or linear");
  }
  call.attrs.Set("coordinate_transformation_mode", std::string("asymmetric"));
  call.attrs.Set("nearest_mode", std::string(kOldNearestMode));
  return absl::OkStatus();
}

absl::StatusOr<Resampling> ResizingOf(const AttrMap& attrs) {
  Resampling how;
  ASSIGN_OR_RETURN(how.filter, ResizeAttr(attrs, "mode", kResizeFilters));
  ASSIGN_OR_RETURN(how.coordinates,
                   ResizeAttr(attrs, "coordinate_transformation_mode", kResizeCoordinates));
  ASSIGN_OR_RETURN(how.rounding, ResizeAttr(attrs, "nearest_mode", kResizeRoundings));
  how.cubic_coefficient = attrs.Float("cubic_coeff_a", -0.75);
  how.exclude_outside = attrs.Int("exclude_outside", 0) != 0;
  how.antialias = attrs.Int("antialias", 0) != 0;
  how.extrapolation_value = attrs.Float("extrapolation_value", 0);
  return how;
}

absl::Status CheckResizeEntries(std::string_view name, size_t entries, size_t expected) {
  if (entries == expected) return absl::OkStatus();
  return InvalidArgument(name, " has ", entries, " entries, expected ", expected);
}

// The dims that scales, sizes and roi speak of, in their order; what is shown of them is known.
absl::StatusOr<std::vector<ResampledDim>> NamedResizeDims(const OpCall& call, bool crop) {
  const int rank = call.shape(0).rank();
  std::vector<int64_t> axes = call.attrs().Ints("axes");
  if (!call.attrs().Has("axes")) {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  }
  RETURN_IF_ERROR(call.NormaliseAxes(axes, rank).status());
  const auto* roi = call.attrs().Find<std::vector<double>>("roi");
  if (crop && roi == nullptr && !call.has_input(1)) {
    return InvalidArgument("roi is missing: coordinate_transformation_mode is tf_crop_and_resize");
  }
  const bool at_run = crop && roi == nullptr;
  crop = crop && roi != nullptr;
  if (crop) RETURN_IF_ERROR(CheckResizeEntries("roi", roi->size(), 2 * axes.size()));
  std::vector<ResampledDim> dims(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(dims[i].axis, call.NormaliseAxis(axes[i], rank));
    // What only a run knows is another part, as far as can be seen here.
    if (at_run) dims[i].roi_begin = std::numeric_limits<double>::quiet_NaN();
    if (!crop) continue;
    dims[i].roi_begin = (*roi)[i];
    dims[i].roi_end = (*roi)[i + axes.size()];
    // Far enough outside to mean that nothing is seen; coordinates stay integers.
    constexpr double kFarthest = 1 << 20;
    const bool near =
        std::abs(dims[i].roi_begin) <= kFarthest && std::abs(dims[i].roi_end) <= kFarthest;
    if (!near) {
      return InvalidArgument("roi has the entries ", dims[i].roi_begin, " and ", dims[i].roi_end,
                             ", expected numbers within ", kFarthest, " of 0");
    }
  }
  return dims;
}

// At scale 1 every coordinate of what is not cropped is its own.
bool IsUnchanged(const ResampledDim& dim) {
  return dim.scale == 1 && dim.original == dim.resized && dim.roi_begin == 0 && dim.roi_end == 1;
}

absl::StatusOr<int64_t> ResizedExtent(const OpCall& call, int axis) {
  const Dim& extent = call.shape(0).dim(axis);
  if (!extent.is_static()) return Unimplemented("resizing the symbolic dim ", extent.ToString());
  return extent.value();
}

absl::Status SetScales(const OpCall& call, const std::vector<double>& scales,
                       std::vector<ResampledDim>* dims) {
  RETURN_IF_ERROR(CheckResizeEntries("scales", scales.size(), dims->size()));
  for (size_t i = 0; i < dims->size(); ++i) {
    ResampledDim& dim = (*dims)[i];
    dim.scale = scales[i];
    if (IsUnchanged(dim)) continue;  // a symbolic dim may stay as it is
    ASSIGN_OR_RETURN(dim.original, ResizedExtent(call, dim.axis));
    ASSIGN_OR_RETURN(dim.resized, ScaledExtent(dim.original, dim.scale));
    dim.length = static_cast<double>(dim.original) * dim.scale;
  }
  return absl::OkStatus();
}

// With a policy other than stretch all dims get one scale: the smallest that is asked for, or the
// largest.
absl::Status KeepAspectRatio(AspectRatioPolicy policy, std::vector<ResampledDim>* dims) {
  if (policy == AspectRatioPolicy::kStretch || dims->empty()) return absl::OkStatus();
  double scale = (*dims)[0].scale;
  for (const ResampledDim& dim : *dims) {
    if (dim.original == 0) {
      return InvalidArgument("dim ", dim.axis, " has no element: there is no aspect ratio to keep");
    }
    scale = policy == AspectRatioPolicy::kNotLarger ? std::min(scale, dim.scale)
                                                    : std::max(scale, dim.scale);
  }
  for (ResampledDim& dim : *dims) {
    dim.scale = scale;
    dim.length = scale * static_cast<double>(dim.original);
    if (!(dim.length < static_cast<double>(kMaxExtent))) {
      return InvalidArgument("sizes and their policy give dim ", dim.axis, " the extent ",
                             dim.length);
    }
    dim.resized = static_cast<int64_t>(std::floor(dim.length + 0.5));
  }
  return absl::OkStatus();
}

absl::Status SetSizes(const OpCall& call, const std::vector<int64_t>& sizes,
                      std::vector<ResampledDim>* dims) {
  RETURN_IF_ERROR(CheckResizeEntries("sizes", sizes.size(), dims->size()));
  ASSIGN_OR_RETURN(AspectRatioPolicy policy,
                   ResizeAttr(call.attrs(), "keep_aspect_ratio_policy", kAspectRatioPolicies));
  for (size_t i = 0; i < dims->size(); ++i) {
    ResampledDim& dim = (*dims)[i];
    dim.resized = sizes[i];
    if (dim.resized < 0 || dim.resized > kMaxExtent) {
      return InvalidArgument("sizes has the entry ", dim.resized, ", expected 0..", kMaxExtent);
    }
    ASSIGN_OR_RETURN(dim.original, ResizedExtent(call, dim.axis));
    dim.length = static_cast<double>(dim.resized);
    if (dim.original > 0) dim.scale = dim.length / static_cast<double>(dim.original);
  }
  return KeepAspectRatio(policy, dims);
}

absl::StatusOr<Decomposition::Value> DecomposeResize(Decomposition& d) {
  const OpCall& call = d.call();
  ASSIGN_OR_RETURN(Resampling how, ResizingOf(call.attrs()));
  const bool crop = how.coordinates == ResampleCoordinates::kTfCropAndResize;
  ASSIGN_OR_RETURN(std::vector<ResampledDim> dims, NamedResizeDims(call, crop));
  const auto* scales = call.attrs().Find<std::vector<double>>("scales");
  const std::vector<int64_t> sizes = call.attrs().Ints("sizes");
  // An input that is not meant may be there without elements.
  const bool by_scale = scales != nullptr && !scales->empty();
  if (by_scale == !sizes.empty() && !dims.empty()) {
    return InvalidArgument(
        by_scale ? "scales and sizes are both given" : "neither scales nor sizes are given",
        ", expected one of them");
  }
  if (by_scale) {
    RETURN_IF_ERROR(SetScales(call, *scales, &dims));
  } else {
    RETURN_IF_ERROR(SetSizes(call, sizes, &dims));
  }
  if (crop && !call.attrs().Has("roi")) return CroppedAtRun(d, how, dims, d.in(1));
  dims.erase(std::remove_if(dims.begin(), dims.end(), IsUnchanged), dims.end());
  return Resampled(d, how, std::move(dims));
}

}  // namespace

/// y = x with dims of other extents: each element is read where coordinate_transformation_mode puts
/// it in x, as the nearest element or as a weighted sum of those around it (linear, cubic). The
/// extents are constants: `sizes`, or `scales` times those of x. The part that tf_crop_and_resize
/// shows may be an input.
OpDef DefineResize() {
  return {.name = "Resize",
          .max_inputs = 2,
          .params = {{.name = "mode", .kind = ParamSpec::kString},
                     {.name = "coordinate_transformation_mode", .kind = ParamSpec::kString},
                     {.name = "nearest_mode", .kind = ParamSpec::kString},
                     {.name = "cubic_coeff_a", .kind = ParamSpec::kFloat},
                     {.name = "exclude_outside", .kind = ParamSpec::kInt},
                     {.name = "extrapolation_value", .kind = ParamSpec::kFloat},
                     {.name = "antialias", .kind = ParamSpec::kInt},
                     {.name = "axes", .kind = ParamSpec::kInts},
                     {.name = "keep_aspect_ratio_policy", .kind = ParamSpec::kString},
                     {.name = "roi",
                      .kind = ParamSpec::kFloats,
                      .onnx_input = 1,
                      .unknown_is_operand = true},
                     {.name = "scales", .kind = ParamSpec::kFloats, .onnx_input = 2},
                     {.name = "sizes", .kind = ParamSpec::kInts, .onnx_input = 3}},
          .min_opset = 10,
          .decompose = DecomposeResize,
          .normalise = NormaliseResize};
}

}  // namespace fusion
