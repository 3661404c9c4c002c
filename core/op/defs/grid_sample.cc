#include <algorithm>

#include "core/op/forms.h"
#include "core/op/forms/resampling.h"
#include "core/op/forms/sampling.h"

namespace fusion {

namespace {

// Elements of x that one of y is made of, at most.
constexpr int64_t kMaxGridTaps = 64;

absl::StatusOr<SampleFilter> GridFilter(const OpCall& call) {
  const auto* mode = call.attrs().Find<std::string>("mode");
  if (mode == nullptr || *mode == "linear" || *mode == "bilinear") return SampleFilter::kLinear;
  if (*mode == "cubic" || *mode == "bicubic") return SampleFilter::kCubic;
  if (*mode == "nearest") return SampleFilter::kNearest;
  return InvalidArgument("attribute \"mode\" is ", QuoteShort(*mode),
                         ", expected linear, nearest or cubic (bilinear, bicubic)");
}

absl::StatusOr<SamplePadding> GridPadding(const OpCall& call) {
  const auto* mode = call.attrs().Find<std::string>("padding_mode");
  if (mode == nullptr || *mode == "zeros") return SamplePadding::kZeros;
  if (*mode == "border") return SamplePadding::kBorder;
  if (*mode == "reflection") return SamplePadding::kReflection;
  return InvalidArgument("attribute \"padding_mode\" is ", QuoteShort(*mode),
                         ", expected zeros, border or reflection");
}

// The spatial dims of x, checked against the grid.
absl::StatusOr<std::vector<SampledDim>> GridDims(const OpCall& call) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
  const int rank = call.shape(0).rank();
  const int spatial = rank - 2;
  if (!IsFloat(call.dtype(1))) {
    return InvalidArgument("input 1 is ", DTypeName(call.dtype(1)), ", expected a float type");
  }
  if (call.shape(1).rank() != rank || call.shape(1).dim(rank - 1) != Dim(spatial)) {
    return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected rank ", rank,
                           " and a last dim of ", spatial, ": a place in input 0 ",
                           call.in(0).ToString());
  }
  RETURN_IF_ERROR(call.CheckSameExtent(0, 0, 1, 0));
  ASSIGN_OR_RETURN(SampleFilter filter, GridFilter(call));
  ASSIGN_OR_RETURN(SamplePadding padding, GridPadding(call));
  std::vector<SampledDim> dims;
  int64_t taps = 1;
  for (int d = 2; d < rank; ++d) {
    const Dim& extent = call.shape(0).dim(d);
    if (!extent.is_static()) return Unimplemented("sampling the symbolic dim ", extent.ToString());
    if (extent.value() < 1) {
      return InvalidArgument("dim ", d, " of input 0 ", call.in(0).ToString(),
                             " has no element to sample");
    }
    dims.push_back({.extent = extent.value(),
                    .padding = padding,
                    .filter = filter,
                    .align_corners = call.attrs().Int("align_corners", 0) != 0});
    taps = std::min(taps * TapsOf(filter).count, kMaxGridTaps + 1);
  }
  if (taps > kMaxGridTaps) {
    return Unimplemented("attribute \"mode\" needs more than ", kMaxGridTaps, " elements of the ",
                         spatial, " spatial dims of input 0 ", call.in(0).ToString(),
                         " for one of the output");
  }
  return dims;
}

/// What the taps of one dim read, each [N, out..].
struct GridTap {
  Decomposition::Value index = 0;
  Decomposition::Value inside = -1;  // negative: everywhere
  Decomposition::Value weight = -1;  // negative: 1
};

/// y as a sum over the corners: one tap of each dim.
class GridSampler {
 public:
  explicit GridSampler(Decomposition& d) : d_(d), type_(d.call().dtype(0)) {}

  absl::StatusOr<Decomposition::Value> Run() {
    ASSIGN_OR_RETURN(std::vector<SampledDim> dims, GridDims(d_.call()));
    const auto rank = static_cast<int64_t>(dims.size()) + 2;
    if (TapsOf(dims[0].filter).count > 1) {
      if (type_ == DType::kBool) {
        return InvalidArgument(
            "input 0 is bool, expected a numeric type: only mode nearest takes it");
      }
      type_ = InterpolationType(type_);
    }
    for (size_t i = 0; i < dims.size(); ++i) RETURN_IF_ERROR(AddDim(dims, i));
    // Channels last: they are what one place of the grid reads together.
    Dims perm = {0};
    for (int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
    perm.push_back(1);
    ASSIGN_OR_RETURN(x_, d_.Apply("Transpose", {d_.in(0)}, {{"perm", perm}}));
    RETURN_IF_ERROR(AddCorners({}));
    ASSIGN_OR_RETURN(sum_, CastTo(d_, sum_, d_.call().dtype(0)));
    perm = {0, rank - 1};
    for (int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
    return d_.Apply("Transpose", {sum_}, {{"perm", perm}});
  }

 private:
  // The last dim is the first of a place.
  absl::Status AddDim(const std::vector<SampledDim>& dims, size_t i) {
    const SampledDim& dim = dims[i];
    HostTensor at(DType::kI64, {});
    at.SetInt(0, static_cast<int64_t>(dims.size() - 1 - i));
    ASSIGN_OR_RETURN(auto place, d_.Apply("Gather", {d_.in(1), d_.Constant(std::move(at))},
                                          {{"axis", int64_t{-1}}}));
    const bool wide = d_.call().dtype(1) == DType::kF64;
    ASSIGN_OR_RETURN(place, CastTo(d_, place, wide ? DType::kF64 : DType::kF32));
    ASSIGN_OR_RETURN(auto x, SampleCoordinate(d_, dim, place));
    const SampleTaps range = TapsOf(dim.filter);
    taps_.emplace_back();
    for (int64_t offset = range.first; offset < range.first + range.count; ++offset) {
      GridTap tap;
      ASSIGN_OR_RETURN(tap.index, SampleIndex(d_, dim, offset, x));
      if (dim.padding == SamplePadding::kZeros) {
        ASSIGN_OR_RETURN(tap.inside, SampleInside(d_, dim, offset, x));
      }
      if (range.count > 1) {
        ASSIGN_OR_RETURN(tap.weight, SampleWeight(d_, dim, offset, x));
        ASSIGN_OR_RETURN(tap.weight, CastTo(d_, tap.weight, type_));
      }
      taps_.back().push_back(tap);
    }
    return absl::OkStatus();
  }

  // Every choice of a tap for each dim that goes on from `chosen`.
  absl::Status AddCorners(std::vector<GridTap> chosen) {
    if (chosen.size() == taps_.size()) return AddCorner(chosen);
    for (const GridTap& tap : taps_[chosen.size()]) {
      chosen.push_back(tap);
      RETURN_IF_ERROR(AddCorners(chosen));
      chosen.pop_back();
    }
    return absl::OkStatus();
  }

  absl::Status AddCorner(const std::vector<GridTap>& corner) {
    std::vector<Decomposition::Value> inputs = {x_};
    Decomposition::Value inside = -1;
    Decomposition::Value weight = -1;
    for (const GridTap& tap : corner) {
      inputs.push_back(tap.index);
      RETURN_IF_ERROR(Join("And", tap.inside, &inside));
      RETURN_IF_ERROR(Join("Mul", tap.weight, &weight));
    }
    ASSIGN_OR_RETURN(auto y, d_.Apply("GatherAt", std::move(inputs), {{"batch_dims", int64_t{1}}}));
    ASSIGN_OR_RETURN(y, CastTo(d_, y, type_));
    const AttrMap channel = {{"axes", Dims{-1}}};
    if (inside >= 0) {
      // A weight of 0 would not do: what lies at the border may be infinite.
      ASSIGN_OR_RETURN(inside, d_.Apply("Unsqueeze", {inside}, channel));
      ASSIGN_OR_RETURN(y, d_.Apply("Where", {inside, y, d_.Scalar(type_, 0)}));
    }
    if (weight >= 0) {
      ASSIGN_OR_RETURN(weight, d_.Apply("Unsqueeze", {weight}, channel));
      ASSIGN_OR_RETURN(y, d_.Apply("Mul", {y, weight}));
    }
    return Join("Add", y, &sum_);
  }

  // *all = op(*all, one), or `one` if it is the first; nothing if it is absent.
  absl::Status Join(std::string_view op, Decomposition::Value one, Decomposition::Value* all) {
    if (one < 0) return absl::OkStatus();
    if (*all < 0) {
      *all = one;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(*all, d_.Apply(op, {*all, one}));
    return absl::OkStatus();
  }

  Decomposition& d_;
  DType type_;  // of the sum
  std::vector<std::vector<GridTap>> taps_;
  Decomposition::Value x_ = -1;
  Decomposition::Value sum_ = -1;
};

}  // namespace

/// y[n, c, o..] = x[n, c, p..] at the place p = grid[n, o..], from -1 to 1 along each dim, last dim
/// first: the nearest element or a weighted sum of those around it
OpDef DefineGridSample() {
  return {.name = "GridSample",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "mode", .kind = ParamSpec::kString},
                     {.name = "padding_mode", .kind = ParamSpec::kString},
                     {.name = "align_corners", .kind = ParamSpec::kInt}},
          .min_opset = 16,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            return GridSampler(d).Run();
          }};
}

}  // namespace fusion
