#include <limits>

#include "core/op/forms.h"
#include "core/op/forms/resampling.h"
#include "core/op/forms/sampling.h"
#include "core/op/repeat.h"

namespace fusion {

namespace {

/// The attributes of a RoiAlign and what else is known of its dims.
struct RoiAlignParams {
  int64_t bins[2] = {1, 1};  // along height and width
  SampledDim dims[2];
  // In a bin, along each dim; where regions decide, so many are looked at in one pass.
  int64_t samples[2] = {1, 1};
  bool adaptive = false;  // as many as a bin has elements
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
    // A region within the tensor has no more elements than that: one pass does.
    out.samples[i] = out.adaptive ? (out.dims[i].extent - 1) / out.bins[i] + 1 : ratio;
  }
  RETURN_IF_ERROR(CheckRoiSamples(call, out));
  out.spatial_scale = attrs.Float("spatial_scale", 1);
  ASSIGN_OR_RETURN(out.max, RoiFlag(attrs, "mode", "avg", "max", false));
  ASSIGN_OR_RETURN(out.half_pixel, RoiFlag(attrs, "coordinate_transformation_mode",
                                           "output_half_pixel", "half_pixel", true));
  return out;
}

// Numbers 0, 1, .. along dim 1 + 2 i + `behind` of [regions, bins, samples, bins, samples].
Decomposition::Value Counted(Decomposition& d, DType type, int i, int behind, int64_t count) {
  Dims dims(static_cast<size_t>(4 - 2 * i - behind), 1);
  dims[0] = count;
  HostTensor numbers(type, dims);
  for (int64_t k = 0; k < count; ++k) numbers.SetDouble(k, static_cast<double>(k));
  return d.Constant(std::move(numbers));
}

using Value = Decomposition::Value;

constexpr Value kNone = -1;

/// Where regions lie along height (0) or width (1): shapes broadcast to [regions, bins, samples,
/// bins, samples].
struct RoiSide {
  Value begin = kNone;  // of the region
  Value bin = kNone;    // length of a bin
  // Where regions decide, in f64: how many samples a bin has, and which of them can lie within the
  // tensor, from `first` to before `end`. What is no sample, or lies outside, counts as nothing.
  Value count = kNone;
  Value first = kNone;
  Value end = kNone;
};
constexpr Value RoiSide::*kRoiSideParts[] = {&RoiSide::begin, &RoiSide::bin, &RoiSide::count,
                                             &RoiSide::first, &RoiSide::end};

/// What the samples of a pass are made from.
struct RoiOperands {
  Value x = kNone;      // as the node has it
  Value batch = kNone;  // [regions, 1, 1, 1, 1]
  RoiSide sides[2];
};

// By how many samples the coordinates of a region of up to 2^24 elements, in f32, may be off.
constexpr int kRoundedSamples = 8;

/// One element of a linear filter: shapes broadcast to [regions, bins, samples, bins, samples].
struct RoiTap {
  Value index = 0;
  Value weight = 0;
};

/// Samples of one pass, params.samples in each bin along each dim. Coordinates are computed in f32
/// at least.
class RoiPass {
 public:
  RoiPass(Decomposition& d, const RoiAlignParams& params, DType type, const RoiOperands& operands)
      : d_(d), params_(params), type_(type), operands_(operands) {}

  /// What they give all together, [regions, bins, bins, channels]: their mean; where regions decide
  /// their sum; or the largest. Those samples are meant that come `behind` the first ones, f64
  /// scalars; kNone: the first ones.
  absl::StatusOr<Value> Run(Value behind_height, Value behind_width) {
    const Value behind[2] = {behind_height, behind_width};
    ASSIGN_OR_RETURN(batch_, ToAllSamples(operands_.batch));
    ASSIGN_OR_RETURN(x_, d_.Apply("Transpose", {operands_.x}, {{"perm", Dims{0, 2, 3, 1}}}));
    RoiTap taps[2][2];
    for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(TapsAlong(i, behind[i], taps[i]));
    Value y = kNone;
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
    return params_.adaptive ? OfSamplesThatAre(y)
                            : Over(params_.max ? "ReduceMax" : "ReduceMean", y);
  }

 private:
  Value Number(double value) { return d_.Scalar(type_, value); }

  absl::StatusOr<Value> Over(std::string_view reduction, Value y) {
    return d_.Apply(reduction, {y}, {{"axes", Dims{2, 4}}, {"keepdims", int64_t{0}}});
  }

  absl::StatusOr<Value> OfSamplesThatAre(Value y) {
    ASSIGN_OR_RETURN(auto is, d_.Apply("And", {is_sample_[0], is_sample_[1]}));
    ASSIGN_OR_RETURN(is, d_.Apply("Unsqueeze", {is}, {{"axes", Dims{-1}}}));
    const double absent = params_.max ? -std::numeric_limits<double>::infinity() : 0;
    ASSIGN_OR_RETURN(y, d_.Apply("Where", {is, y, Number(absent)}));
    return Over(params_.max ? "ReduceMax" : "ReduceSum", y);
  }

  absl::StatusOr<Value> ToAllSamples(Value x) {
    const Dims shape = {1, params_.bins[0], params_.samples[0], params_.bins[1],
                        params_.samples[1]};
    return d_.Apply("Expand", {x}, {{"shape", shape}});
  }

  // Coordinates of the samples along height (0) or width (1): begin + b * bin + (k + 0.5) * bin /
  // count, computed in this order as other implementations do. At -1 and at the extent, where
  // samples begin and end to count, rounding decides.
  absl::StatusOr<Value> SamplesAlong(int i, Value behind) {
    const RoiSide& side = operands_.sides[i];
    const auto bins = Counted(d_, type_, i, 0, params_.bins[i]);
    ASSIGN_OR_RETURN(auto start, d_.Apply("Mul", {side.bin, bins}));
    ASSIGN_OR_RETURN(start, d_.Apply("Add", {side.begin, start}));
    auto number = Counted(d_, DType::kF64, i, 1, params_.samples[i]);
    auto count = Number(static_cast<double>(params_.samples[i]));
    if (params_.adaptive) {
      ASSIGN_OR_RETURN(number, NumbersOf(i, number, behind));
      ASSIGN_OR_RETURN(count, CastTo(d_, side.count, type_));
      ASSIGN_OR_RETURN(count, d_.Apply("Max", {count, Number(1)}));
    }
    ASSIGN_OR_RETURN(number, d_.Apply("Add", {number, d_.Scalar(DType::kF64, 0.5)}));
    ASSIGN_OR_RETURN(number, CastTo(d_, number, type_));
    ASSIGN_OR_RETURN(auto within, d_.Apply("Mul", {number, side.bin}));
    ASSIGN_OR_RETURN(within, d_.Apply("Div", {within, count}));
    return d_.Apply("Add", {start, within});
  }

  // The samples of this pass as numbers within their bins.
  absl::StatusOr<Value> NumbersOf(int i, Value counted, Value behind) {
    const RoiSide& side = operands_.sides[i];
    ASSIGN_OR_RETURN(auto number, d_.Apply("Add", {side.first, counted}));
    if (behind != kNone) {
      ASSIGN_OR_RETURN(number, d_.Apply("Add", {number, behind}));
    }
    ASSIGN_OR_RETURN(auto is, d_.Apply("Less", {number, side.end}));
    ASSIGN_OR_RETURN(is_sample_[i], ToAllSamples(is));
    return number;
  }

  absl::Status TapsAlong(int i, Value behind, RoiTap (&taps)[2]) {
    const SampledDim& dim = params_.dims[i];
    const auto extent = static_cast<double>(dim.extent);
    ASSIGN_OR_RETURN(auto place, SamplesAlong(i, behind));
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
  absl::StatusOr<Value> Corner(const RoiTap& h, const RoiTap& w) {
    ASSIGN_OR_RETURN(auto y, d_.Apply("GatherAt", {x_, batch_, h.index, w.index}));
    ASSIGN_OR_RETURN(y, CastTo(d_, y, type_));
    ASSIGN_OR_RETURN(auto weight, d_.Apply("Mul", {h.weight, w.weight}));
    ASSIGN_OR_RETURN(weight, d_.Apply("Unsqueeze", {weight}, {{"axes", Dims{-1}}}));
    return d_.Apply("Mul", {y, weight});
  }

  Decomposition& d_;
  const RoiAlignParams& params_;
  DType type_;
  const RoiOperands& operands_;
  Value batch_ = 0;
  Value x_ = 0;
  Value is_sample_[2] = {0, 0};  // where regions decide
};

/// The steps of a RoiAlign.
class RoiAligner {
 public:
  RoiAligner(Decomposition& d, const RoiAlignParams& params)
      : d_(d), params_(params), type_(InterpolationType(d.call().dtype(0))) {}

  absl::StatusOr<Value> Run() {
    ASSIGN_OR_RETURN(rois_, CastTo(d_, d_.in(1), type_));
    all_.x = d_.in(0);
    ASSIGN_OR_RETURN(all_.batch, CastTo(d_, d_.in(2), DType::kI64));
    ASSIGN_OR_RETURN(all_.batch, d_.Apply("Unsqueeze", {all_.batch}, {{"axes", Dims{1, 2, 3, 4}}}));
    for (int i = 0; i < 2; ++i) RETURN_IF_ERROR(SideAlong(i));
    ASSIGN_OR_RETURN(auto y, RoiPass(d_, params_, type_, all_).Run(kNone, kNone));
    if (params_.adaptive) {
      ASSIGN_OR_RETURN(y, WithMorePasses(y));
      ASSIGN_OR_RETURN(y, OfAllSamples(y));
    }
    ASSIGN_OR_RETURN(y, CastTo(d_, y, d_.call().dtype(0)));
    return d_.Apply("Transpose", {y}, {{"perm", Dims{0, 3, 1, 2}}});
  }

 private:
  Value Number(double value) { return d_.Scalar(type_, value); }
  Value Wide(double value) { return d_.Scalar(DType::kF64, value); }

  // A border of the regions, in elements of x: [regions, 1, 1, 1, 1].
  absl::StatusOr<Value> Border(int64_t column) {
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

  absl::Status SideAlong(int i) {
    RoiSide& side = all_.sides[i];
    // A region is x1, y1, x2, y2.
    ASSIGN_OR_RETURN(side.begin, Border(i == 0 ? 1 : 0));
    ASSIGN_OR_RETURN(auto end, Border(i == 0 ? 3 : 2));
    ASSIGN_OR_RETURN(auto length, d_.Apply("Sub", {end, side.begin}));
    if (!params_.half_pixel) {
      ASSIGN_OR_RETURN(length, d_.Apply("Max", {length, Number(1)}));
    }
    const auto bins = static_cast<double>(params_.bins[i]);
    ASSIGN_OR_RETURN(side.bin, d_.Apply("Div", {length, Number(bins)}));
    return params_.adaptive ? CountSamples(i, end) : absl::OkStatus();
  }

  // As many in a bin as it has elements, rounded up. Lengths are compared in f64: of those that are
  // whole numbers, rounding makes no others.
  absl::Status CountSamples(int i, Value region_end) {
    RoiSide& side = all_.sides[i];
    ASSIGN_OR_RETURN(auto begin, CastTo(d_, side.begin, DType::kF64));
    ASSIGN_OR_RETURN(auto length, CastTo(d_, region_end, DType::kF64));
    ASSIGN_OR_RETURN(length, d_.Apply("Sub", {length, begin}));
    if (!params_.half_pixel) {
      ASSIGN_OR_RETURN(length, d_.Apply("Max", {length, Wide(1)}));
    }
    const auto bins = static_cast<double>(params_.bins[i]);
    ASSIGN_OR_RETURN(auto bin, d_.Apply("Div", {length, Wide(bins)}));
    ASSIGN_OR_RETURN(auto count, d_.Apply("Ceil", {bin}));
    ASSIGN_OR_RETURN(side.count, d_.Apply("Max", {count, Wide(0)}));
    ASSIGN_OR_RETURN(auto some, d_.Apply("Greater", {side.count, Wide(0)}));
    // Sample k of bin b lies at begin + bin * (b + (k + 0.5) / count). Those from -1 to the extent
    // count; some more on both sides are looked at, because coordinates are rounded.
    auto number_at = [&](double place) -> absl::StatusOr<Value> {
      ASSIGN_OR_RETURN(auto at, d_.Apply("Sub", {Wide(place), begin}));
      ASSIGN_OR_RETURN(at, d_.Apply("Div", {at, bin}));
      ASSIGN_OR_RETURN(at, d_.Apply("Sub", {at, Counted(d_, DType::kF64, i, 0, params_.bins[i])}));
      ASSIGN_OR_RETURN(at, d_.Apply("Mul", {at, side.count}));
      return d_.Apply("Sub", {at, Wide(0.5)});
    };
    auto within = [&](Value at, double moved) -> absl::StatusOr<Value> {
      ASSIGN_OR_RETURN(at, d_.Apply("Add", {at, Wide(moved)}));
      ASSIGN_OR_RETURN(at, d_.Apply("Max", {at, Wide(0)}));
      ASSIGN_OR_RETURN(at, d_.Apply("Min", {at, side.count}));
      return d_.Apply("Where", {some, at, Wide(0)});
    };
    ASSIGN_OR_RETURN(auto first, number_at(-1));
    ASSIGN_OR_RETURN(first, d_.Apply("Ceil", {first}));
    ASSIGN_OR_RETURN(side.first, within(first, -kRoundedSamples));
    ASSIGN_OR_RETURN(auto last, number_at(static_cast<double>(params_.dims[i].extent)));
    ASSIGN_OR_RETURN(last, d_.Apply("Floor", {last}));
    ASSIGN_OR_RETURN(side.end, within(last, kRoundedSamples + 1));
    return absl::OkStatus();
  }

  // Passes along a dim that no region needs more of. Samples of a bin of several lie more than
  // (count - 1) / count apart, so that at most extent + 2 of them lie from -1 to the extent.
  int64_t MostPasses(int i) const {
    const int64_t most = params_.dims[i].extent + 2 + 2 * kRoundedSamples;
    return (most - 1) / params_.samples[i] + 1;
  }

  // Passes along a dim that some region needs, an i64 scalar from 1 on.
  absl::StatusOr<Value> PassesAlong(int i) {
    const RoiSide& side = all_.sides[i];
    ASSIGN_OR_RETURN(auto seen, d_.Apply("Sub", {side.end, side.first}));
    ASSIGN_OR_RETURN(auto some, d_.Apply("Greater", {seen, Wide(0)}));
    ASSIGN_OR_RETURN(seen, d_.Apply("Where", {some, seen, Wide(0)}));
    ASSIGN_OR_RETURN(auto passes,
                     d_.Apply("Div", {seen, Wide(static_cast<double>(params_.samples[i]))}));
    ASSIGN_OR_RETURN(passes, d_.Apply("Ceil", {passes}));
    ASSIGN_OR_RETURN(passes, d_.Apply("ReduceMax", {passes},
                                      {{"axes", Dims{0, 1, 2, 3, 4}}, {"keepdims", int64_t{0}}}));
    ASSIGN_OR_RETURN(passes, d_.Apply("Max", {passes, Wide(1)}));
    ASSIGN_OR_RETURN(passes, d_.Apply("Min", {passes, Wide(static_cast<double>(MostPasses(i)))}));
    return CastTo(d_, passes, DType::kI64);
  }

  // `first` together with the results of further passes. A run makes as many passes as the largest
  // region needs: none if all regions lie within x.
  absl::StatusOr<Value> WithMorePasses(Value first) {
    const int64_t most = MostPasses(0) * MostPasses(1);
    if (most == 1) return first;
    ASSIGN_OR_RETURN(auto along_height, PassesAlong(0));
    ASSIGN_OR_RETURN(auto along_width, PassesAlong(1));
    ASSIGN_OR_RETURN(auto more, d_.Apply("Mul", {along_height, along_width}));
    ASSIGN_OR_RETURN(more, d_.Apply("Sub", {more, d_.Scalar(DType::kI64, 1)}));

    auto repeat = std::make_shared<Repeat>();
    repeat->most = most - 1;
    repeat->counted = true;
    std::vector<Value> operands = {more};
    std::vector<std::optional<TensorType>> types;
    auto add = [&](Repeat::Port port, TensorType type) {
      types.emplace_back(type);
      repeat->inputs.push_back({port, std::move(type)});
      return static_cast<Value>(types.size()) - 1;
    };
    auto add_operand = [&](Repeat::Port port, Value operand) {
      operands.push_back(operand);
      return add(port, d_.type(operand));
    };
    const Value pass = add(Repeat::Port::kPass, {DType::kI64, Shape()});
    const Value row_length = add_operand(Repeat::Port::kWhole, along_width);
    RoiOperands inner;
    inner.x = add_operand(Repeat::Port::kWhole, all_.x);
    inner.batch = add_operand(Repeat::Port::kWhole, all_.batch);
    for (int i = 0; i < 2; ++i) {
      for (Value RoiSide::*part : kRoiSideParts) {
        inner.sides[i].*part = add_operand(Repeat::Port::kWhole, all_.sides[i].*part);
      }
    }
    const Value before = add_operand(Repeat::Port::kCarried, first);
    const OpCall call(d_.call().def(), std::move(types), d_.call().attrs());
    Decomposition body(call);
    ASSIGN_OR_RETURN(auto after, OnePassMore(body, pass, row_length, inner, before));
    repeat->steps = std::move(body).TakeSteps();
    repeat->outputs = {{after}};
    const auto results = static_cast<int>(repeat->results());
    AttrMap attrs;
    attrs.Set("body", std::shared_ptr<const Repeat>(std::move(repeat)));
    ASSIGN_OR_RETURN(std::vector<Value> given,
                     d_.ApplyMulti("Repeat", std::move(operands), std::move(attrs), results));
    return given[0];
  }

  // The body of those passes: they go along the width first.
  absl::StatusOr<Value> OnePassMore(Decomposition& body, Value pass, Value row_length,
                                    const RoiOperands& operands, Value before) const {
    ASSIGN_OR_RETURN(auto number, body.Apply("Add", {pass, body.Scalar(DType::kI64, 1)}));
    ASSIGN_OR_RETURN(auto row, body.Apply("Div", {number, row_length}));
    ASSIGN_OR_RETURN(auto rows_before, body.Apply("Mul", {row, row_length}));
    ASSIGN_OR_RETURN(auto column, body.Apply("Sub", {number, rows_before}));
    Value behind[2] = {row, column};
    for (int i = 0; i < 2; ++i) {
      ASSIGN_OR_RETURN(behind[i], CastTo(body, behind[i], DType::kF64));
      const auto samples = static_cast<double>(params_.samples[i]);
      ASSIGN_OR_RETURN(behind[i],
                       body.Apply("Mul", {behind[i], body.Scalar(DType::kF64, samples)}));
    }
    ASSIGN_OR_RETURN(auto y, RoiPass(body, params_, type_, operands).Run(behind[0], behind[1]));
    return body.Apply(params_.max ? "Max" : "Add", {before, y});
  }

  // The mean of all samples of a bin, or the largest; 0 if there is none.
  absl::StatusOr<Value> OfAllSamples(Value y) {
    const RoiSide& h = all_.sides[0];
    const RoiSide& w = all_.sides[1];
    auto of_bins = [&](Value x) -> absl::StatusOr<Value> {
      ASSIGN_OR_RETURN(x, d_.Apply("Squeeze", {x}, {{"axes", Dims{2, 4}}}));
      return d_.Apply("Unsqueeze", {x}, {{"axes", Dims{-1}}});
    };
    ASSIGN_OR_RETURN(auto count, d_.Apply("Mul", {h.count, w.count}));
    ASSIGN_OR_RETURN(count, of_bins(count));
    if (!params_.max) {
      ASSIGN_OR_RETURN(count, CastTo(d_, count, type_));
      ASSIGN_OR_RETURN(count, d_.Apply("Max", {count, Number(1)}));
      return d_.Apply("Div", {y, count});
    }
    // A sample outside is 0.
    Value outside[2] = {kNone, kNone};
    for (int i = 0; i < 2; ++i) {
      const RoiSide& side = all_.sides[i];
      ASSIGN_OR_RETURN(auto seen, d_.Apply("Sub", {side.end, side.first}));
      ASSIGN_OR_RETURN(outside[i], d_.Apply("Less", {seen, side.count}));
    }
    ASSIGN_OR_RETURN(auto some_outside, d_.Apply("Or", {outside[0], outside[1]}));
    ASSIGN_OR_RETURN(some_outside, of_bins(some_outside));
    ASSIGN_OR_RETURN(auto with_zero, d_.Apply("Max", {y, Number(0)}));
    ASSIGN_OR_RETURN(y, d_.Apply("Where", {some_outside, with_zero, y}));
    ASSIGN_OR_RETURN(auto none, d_.Apply("Equal", {count, Wide(0)}));
    return d_.Apply("Where", {none, Number(0), y});
  }

  Decomposition& d_;
  const RoiAlignParams& params_;
  DType type_;
  Value rois_ = 0;
  RoiOperands all_;
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
/// bin has elements, rounded up: those of regions within x are looked at in one pass, and a run
/// makes more passes where regions have more samples within x. Samples outside of x are 0.
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
