#include <limits>

#include "core/op/forms.h"
#include "core/op/resampling.h"
#include "core/op/sampling.h"

namespace fusion {

namespace {

/// The attributes of a RoiAlign and what else is known of its dims.
struct RoiAlignParams {
  int64_t bins[2] = {1, 1};  // along height and width
  SampledDim dims[2];
  int64_t samples[2] = {1, 1};  // in a bin, along each dim; at most, where regions decide
  bool adaptive = false;        // as many as a bin has elements
  double spatial_scale = 1;
  bool half_pixel = true;
  bool max = false;
};

absl::Status CheckRoiInputs(const OpCall& call) {
  if (call.shape(0).rank() != 4 || !IsFloat(call.dtype(0))) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(),
                           ", expected rank 4 and a float type");
  }
  RETURN_IF_ERROR(call.CheckSameType(0, 1));
  if (call.shape(1).rank() != 2 || call.shape(1).dim(1) != Dim(4)) {
    return InvalidArgument("input 1 is ", call.in(1).ToString(),
                           ", expected four numbers for each region");
  }
  if (call.shape(2).rank() != 1 || (call.dtype(2) != DType::kI64 && call.dtype(2) != DType::kI32)) {
    return InvalidArgument("input 2 is ", call.in(2).ToString(),
                           ", expected i64 or i32 of rank 1: the batch of each region");
  }
  return call.CheckSameExtent(1, 0, 2, 0);
}

absl::StatusOr<bool> RoiFlag(const AttrMap& attrs, std::string_view name, std::string_view no,
                             std::string_view yes, bool fallback) {
  const auto* given = attrs.Find<std::string>(name);
  if (given == nullptr) return fallback;
  if (*given == yes) return true;
  if (*given == no) return false;
  return InvalidArgument("attribute ", Quote(name), " is ", QuoteShort(*given), ", expected ", yes,
                         " or ", no);
}

// Refuses more samples than a tensor may have elements.
absl::Status CheckRoiSamples(const OpCall& call, const RoiAlignParams& params) {
  auto extent = [](const Dim& dim) { return dim.is_static() ? dim.value() : 1; };
  const Dims samples = {extent(call.shape(1).dim(0)),
                        params.bins[0],
                        params.samples[0],
                        params.bins[1],
                        params.samples[1],
                        extent(call.shape(0).dim(1))};
  for (int i = 0; i < 2; ++i) {
    if (params.bins[i] > kMaxResampleEntries / params.samples[i]) {
      return Unimplemented(params.bins[i], " bins of ", params.samples[i],
                           " samples along one dim; at most ", kMaxResampleEntries,
                           " samples are supported");
    }
  }
  return CheckedNumElements(samples, DTypeBytes(DType::kF64)).status();
}

absl::StatusOr<RoiAlignParams> RoiAlignParamsOf(const OpCall& call) {
  RETURN_IF_ERROR(CheckRoiInputs(call));
  const AttrMap& attrs = call.attrs();
  RoiAlignParams out;
  const char* names[2] = {"output_height", "output_width"};
  for (int i = 0; i < 2; ++i) {
    const Dim& extent = call.shape(0).dim(i + 2);
    if (!extent.is_static()) return Unimplemented("sampling the symbolic dim ", extent.ToString());
    if (extent.value() < 1) {
      return InvalidArgument("dim ", i + 2, " of input 0 ", call.in(0).ToString(),
                             " has no element to sample");
    }
    out.dims[i].extent = extent.value();
    out.bins[i] = attrs.Int(names[i], 1);
    if (out.bins[i] < 1) {
      return InvalidArgument("attribute ", Quote(names[i]), " is ", out.bins[i],
                             ", expected at least 1");
    }
  }
  const int64_t ratio = attrs.Int("sampling_ratio", 0);
  if (ratio < 0) {
    return InvalidArgument("attribute \"sampling_ratio\" is ", ratio, ", expected at least 0");
  }
  out.adaptive = ratio == 0;
  for (int i = 0; i < 2; ++i) {
    // A region within the tensor has no more elements than that.
    out.samples[i] = out.adaptive ? (out.dims[i].extent - 1) / out.bins[i] + 1 : ratio;
  }
  RETURN_IF_ERROR(CheckRoiSamples(call, out));
  out.spatial_scale = attrs.Float("spatial_scale", 1);
  ASSIGN_OR_RETURN(out.max, RoiFlag(attrs, "mode", "avg", "max", false));
  ASSIGN_OR_RETURN(out.half_pixel, RoiFlag(attrs, "coordinate_transformation_mode",
                                           "output_half_pixel", "half_pixel", true));
  return out;
}

/// One element of a linear filter: shapes broadcast to [regions, bins, samples, bins, samples].
struct RoiTap {
  Decomposition::Value index = 0;
  Decomposition::Value weight = 0;
};

/// The steps of a RoiAlign. Coordinates are computed in f32 at least.
class RoiAligner {
 public:
  RoiAligner(Decomposition& d, const RoiAlignParams& params)
      : d_(d), params_(params), type_(InterpolationType(d.call().dtype(0))) {}

  absl::StatusOr<Decomposition::Value> Run() {
    ASSIGN_OR_RETURN(rois_, CastTo(d_, d_.in(1), type_));
    ASSIGN_OR_RETURN(auto batch, CastTo(d_, d_.in(2), DType::kI64));
    ASSIGN_OR_RETURN(batch, d_.Apply("Unsqueeze", {batch}, {{"axes", Dims{1, 2, 3, 4}}}));
    ASSIGN_OR_RETURN(batch_, ToAllSamples(batch));
    ASSIGN_OR_RETURN(x_, d_.Apply("Transpose", {d_.in(0)}, {{"perm", Dims{0, 2, 3, 1}}}));
    RoiTap taps[2][2];
    for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(TapsAlong(i, taps[i]));
    Decomposition::Value y = -1;
    for (const RoiTap& h : taps[0]) {
      for (const RoiTap& w : taps[1]) {
        ASSIGN_OR_RETURN(auto corner, Corner(h, w));
        if (y < 0) {
          y = corner;
          continue;
        }
        ASSIGN_OR_RETURN(y, d_.Apply(params_.max ? "Max" : "Add", {y, corner}));
      }
    }
    ASSIGN_OR_RETURN(y, params_.adaptive ? OfSamplesThatAre(y) : OfSamples(y));
    ASSIGN_OR_RETURN(y, CastTo(d_, y, d_.call().dtype(0)));
    return d_.Apply("Transpose", {y}, {{"perm", Dims{0, 3, 1, 2}}});
  }

 private:
  Decomposition::Value Number(double value) { return d_.Scalar(type_, value); }

  absl::StatusOr<Decomposition::Value> OfSamples(Decomposition::Value y) {
    return d_.Apply(params_.max ? "ReduceMax" : "ReduceMean", {y},
                    {{"axes", Dims{2, 4}}, {"keepdims", int64_t{0}}});
  }

  // The same of the samples that each region has; 0 if there is none.
  absl::StatusOr<Decomposition::Value> OfSamplesThatAre(Decomposition::Value y) {
    ASSIGN_OR_RETURN(auto is, d_.Apply("And", {is_sample_[0], is_sample_[1]}));
    ASSIGN_OR_RETURN(is, d_.Apply("Unsqueeze", {is}, {{"axes", Dims{-1}}}));
    const double absent = params_.max ? -std::numeric_limits<double>::infinity() : 0;
    ASSIGN_OR_RETURN(y, d_.Apply("Where", {is, y, Number(absent)}));
    ASSIGN_OR_RETURN(y, d_.Apply(params_.max ? "ReduceMax" : "ReduceSum", {y},
                                 {{"axes", Dims{2, 4}}, {"keepdims", int64_t{0}}}));
    ASSIGN_OR_RETURN(auto count, d_.Apply("Mul", {count_[0], count_[1]}));
    ASSIGN_OR_RETURN(count, CastTo(d_, count, type_));
    ASSIGN_OR_RETURN(count, d_.Apply("Squeeze", {count}, {{"axes", Dims{4}}}));
    if (!params_.max) {
      ASSIGN_OR_RETURN(count, d_.Apply("Max", {count, Number(1)}));
      return d_.Apply("Div", {y, count});
    }
    ASSIGN_OR_RETURN(auto none, d_.Apply("Equal", {count, Number(0)}));
    return d_.Apply("Where", {none, Number(0), y});
  }

  absl::StatusOr<Decomposition::Value> ToAllSamples(Decomposition::Value x) {
    const Dims shape = {1, params_.bins[0], params_.samples[0], params_.bins[1],
                        params_.samples[1]};
    return d_.Apply("Expand", {x}, {{"shape", shape}});
  }

  // A border of the regions, in elements of x: [regions, 1, 1, 1, 1].
  absl::StatusOr<Decomposition::Value> Border(int64_t column) {
    HostTensor at(DType::kI64, {});
    at.SetInt(0, column);
    ASSIGN_OR_RETURN(auto border, d_.Apply("Gather", {rois_, d_.Constant(std::move(at))},
                                           {{"axis", int64_t{1}}}));
    ASSIGN_OR_RETURN(border, d_.Apply("Mul", {border, Number(params_.spatial_scale)}));
    if (params_.half_pixel) {
      ASSIGN_OR_RETURN(border, d_.Apply("Sub", {border, Number(0.5)}));
    }
    return d_.Apply("Unsqueeze", {border}, {{"axes", Dims{1, 2, 3, 4}}});
  }

  // Coordinates of the samples along height (0) or width (1).
  absl::StatusOr<Decomposition::Value> SamplesAlong(int i) {
    const int64_t bins = params_.bins[i];
    const int64_t samples = params_.samples[i];
    // A region is x1, y1, x2, y2.
    ASSIGN_OR_RETURN(auto begin, Border(i == 0 ? 1 : 0));
    ASSIGN_OR_RETURN(auto end, Border(i == 0 ? 3 : 2));
    ASSIGN_OR_RETURN(auto length, d_.Apply("Sub", {end, begin}));
    if (!params_.half_pixel) {
      ASSIGN_OR_RETURN(length, d_.Apply("Max", {length, Number(1)}));
    }
    ASSIGN_OR_RETURN(auto bin, d_.Apply("Div", {length, Number(static_cast<double>(bins))}));
    if (params_.adaptive) return AdaptiveSamples(i, begin, end, bin);
    HostTensor steps(type_, i == 0 ? Dims{bins, samples, 1, 1} : Dims{bins, samples});
    for (int64_t k = 0; k < bins * samples; ++k) {
      const int64_t bin_before = k / samples;
      const double within = (static_cast<double>(k % samples) + 0.5) / static_cast<double>(samples);
      steps.SetDouble(k, static_cast<double>(bin_before) + within);
    }
    ASSIGN_OR_RETURN(auto step, d_.Apply("Mul", {bin, d_.Constant(std::move(steps))}));
    return d_.Apply("Add", {begin, step});
  }

  // Numbers 0, 1, .. along dim 1 + 2 i + `behind` of [regions, bins, samples, bins, samples].
  Decomposition::Value Counted(int i, int behind, int64_t count) {
    Dims dims(static_cast<size_t>(4 - 2 * i - behind), 1);
    dims[0] = count;
    HostTensor numbers(DType::kF64, dims);
    for (int64_t k = 0; k < count; ++k) numbers.SetDouble(k, static_cast<double>(k));
    return d_.Constant(std::move(numbers));
  }

  // As many in a bin as it has elements, at most params_.samples: how many of those there are, and
  // which. Lengths are compared in f64: of those that are whole numbers, rounding makes no others.
  absl::StatusOr<Decomposition::Value> AdaptiveSamples(int i, Decomposition::Value begin,
                                                       Decomposition::Value end,
                                                       Decomposition::Value bin) {
    auto wide = [&](double value) { return d_.Scalar(DType::kF64, value); };
    ASSIGN_OR_RETURN(auto first, CastTo(d_, begin, DType::kF64));
    ASSIGN_OR_RETURN(auto length, CastTo(d_, end, DType::kF64));
    ASSIGN_OR_RETURN(length, d_.Apply("Sub", {length, first}));
    if (!params_.half_pixel) {
      ASSIGN_OR_RETURN(length, d_.Apply("Max", {length, wide(1)}));
    }
    ASSIGN_OR_RETURN(auto count,
                     d_.Apply("Div", {length, wide(static_cast<double>(params_.bins[i]))}));
    ASSIGN_OR_RETURN(count, d_.Apply("Ceil", {count}));
    ASSIGN_OR_RETURN(count, d_.Apply("Max", {count, wide(0)}));
    ASSIGN_OR_RETURN(count_[i],
                     d_.Apply("Min", {count, wide(static_cast<double>(params_.samples[i]))}));
    const auto number = Counted(i, 1, params_.samples[i]);
    ASSIGN_OR_RETURN(auto is, d_.Apply("Less", {number, count_[i]}));
    ASSIGN_OR_RETURN(is_sample_[i], ToAllSamples(is));
    ASSIGN_OR_RETURN(auto step, d_.Apply("Add", {number, wide(0.5)}));
    ASSIGN_OR_RETURN(auto some, d_.Apply("Max", {count_[i], wide(1)}));
    ASSIGN_OR_RETURN(step, d_.Apply("Div", {step, some}));
    ASSIGN_OR_RETURN(step, d_.Apply("Add", {step, Counted(i, 0, params_.bins[i])}));
    ASSIGN_OR_RETURN(step, CastTo(d_, step, type_));
    ASSIGN_OR_RETURN(step, d_.Apply("Mul", {bin, step}));
    return d_.Apply("Add", {begin, step});
  }

  absl::Status TapsAlong(int i, RoiTap (&taps)[2]) {
    const SampledDim& dim = params_.dims[i];
    const auto extent = static_cast<double>(dim.extent);
    ASSIGN_OR_RETURN(auto place, SamplesAlong(i));
    ASSIGN_OR_RETURN(auto after, d_.Apply("GreaterOrEqual", {place, Number(-1)}));
    ASSIGN_OR_RETURN(auto before, d_.Apply("LessOrEqual", {place, Number(extent)}));
    ASSIGN_OR_RETURN(auto inside, d_.Apply("And", {after, before}));
    ASSIGN_OR_RETURN(auto x, d_.Apply("Max", {place, Number(0)}));
    ASSIGN_OR_RETURN(x, d_.Apply("Min", {x, Number(extent - 1)}));
    for (int64_t offset = 0; offset < 2; ++offset) {
      RoiTap& tap = taps[offset];
      ASSIGN_OR_RETURN(auto index, SampleIndex(d_, dim, offset, x));
      ASSIGN_OR_RETURN(tap.index, ToAllSamples(index));
      ASSIGN_OR_RETURN(auto weight, SampleWeight(d_, dim, offset, x));
      ASSIGN_OR_RETURN(tap.weight, d_.Apply("Where", {inside, weight, Number(0)}));
    }
    return absl::OkStatus();
  }

  // [regions, bins, samples, bins, samples, channels]
  absl::StatusOr<Decomposition::Value> Corner(const RoiTap& h, const RoiTap& w) {
    ASSIGN_OR_RETURN(auto y, d_.Apply("GatherAt", {x_, batch_, h.index, w.index}));
    ASSIGN_OR_RETURN(y, CastTo(d_, y, type_));
    ASSIGN_OR_RETURN(auto weight, d_.Apply("Mul", {h.weight, w.weight}));
    ASSIGN_OR_RETURN(weight, d_.Apply("Unsqueeze", {weight}, {{"axes", Dims{-1}}}));
    return d_.Apply("Mul", {y, weight});
  }

  Decomposition& d_;
  const RoiAlignParams& params_;
  DType type_;
  Decomposition::Value rois_ = 0;
  Decomposition::Value batch_ = 0;
  Decomposition::Value x_ = 0;
  // Where regions decide, along height and width: how many samples, and whether one is of them.
  Decomposition::Value count_[2] = {0, 0};
  Decomposition::Value is_sample_[2] = {0, 0};
};

// Before opset 16 regions were not moved by half an element.
absl::Status NormaliseRoiAlign(OnnxCall& call) {
  if (call.opset >= 16) return absl::OkStatus();
  if (call.attrs.Has("coordinate_transformation_mode")) {
    return InvalidArgument("unknown attribute \"coordinate_transformation_mode\"");
  }
  call.attrs.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return absl::OkStatus();
}

}  // namespace

/// y[r, c, i, j] = the mean of samples of x[batch_indices[r], c] in bin (i, j) of region r, each a
/// weighted sum of the four elements around it; with mode max the largest of these weighted
/// elements, as ONNX's reference has it. Without `sampling_ratio` there are as many samples as a
/// bin has elements, rounded up; of regions larger than x, as many as x has.
OpDef DefineRoiAlign() {
  return {.name = "RoiAlign",
          .min_inputs = 3,
          .max_inputs = 3,
          .params = {{.name = "coordinate_transformation_mode", .kind = ParamSpec::kString},
                     {.name = "mode", .kind = ParamSpec::kString},
                     {.name = "output_height", .kind = ParamSpec::kInt},
                     {.name = "output_width", .kind = ParamSpec::kInt},
                     {.name = "sampling_ratio", .kind = ParamSpec::kInt},
                     {.name = "spatial_scale", .kind = ParamSpec::kFloat}},
          .min_opset = 10,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(RoiAlignParams params, RoiAlignParamsOf(d.call()));
            return RoiAligner(d, params).Run();
          },
          .normalise = NormaliseRoiAlign};
}

}  // namespace fusion
