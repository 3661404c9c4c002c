#include <limits>

#include "core/op/forms.h"

namespace fusion {

namespace {

struct RoiPoolDims {
  int64_t regions = 0;
  Dims extents;  // of height and width
  Dims bins;     // along them
};

absl::StatusOr<RoiPoolDims> RoiPoolDimsOf(const OpCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(call.CheckSameType(0, 1));
  ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
  ASSIGN_OR_RETURN(Dims rois, StaticDims(call, 1));
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 5) {
    return InvalidArgument("inputs 0 and 1 are ", call.in(0).ToString(), " and ",
                           call.in(1).ToString(),
                           ", expected [batch, channels, height, width] and [regions, 5]");
  }
  RoiPoolDims out{
      .regions = rois[0], .extents = {x[2], x[3]}, .bins = call.attrs().Ints("pooled_shape")};
  bool fit = out.bins.size() == 2;
  for (int64_t bins : out.bins) fit = fit && bins > 0 && bins <= kMaxExtent;
  if (fit) return out;
  return InvalidArgument("attribute \"pooled_shape\" is [", StrJoin(out.bins, ","),
                         "], expected two positive numbers");
}

/// Of one dim: which elements each bin of a region holds.
struct RoiBins {
  Decomposition::Value inside = 0;  // [regions, bins, extent]
  Decomposition::Value empty = 0;   // [regions, bins]
};

/// The steps of a MaxRoiPool: one dim after the other.
class RoiPooler {
 public:
  using Value = Decomposition::Value;

  RoiPooler(Decomposition& d, const RoiPoolDims& dims)
      : d_(d), dims_(dims), type_(StatisticsType(d.call().dtype(0))) {}

  absl::StatusOr<Value> Run() {
    ASSIGN_OR_RETURN(rois_, CastTo(d_, d_.in(1), type_));
    ASSIGN_OR_RETURN(auto batch, Column(0));
    ASSIGN_OR_RETURN(batch, CastTo(d_, batch, DType::kI64));
    ASSIGN_OR_RETURN(auto y, d_.Apply("Gather", {d_.in(0), batch}, {{"axis", int64_t{0}}}));
    ASSIGN_OR_RETURN(RoiBins h, BinsAlong(0));
    ASSIGN_OR_RETURN(RoiBins w, BinsAlong(1));
    // [regions, channels, height, bins of the width, width] to [regions, channels, height, bins]
    ASSIGN_OR_RETURN(y, Largest(y, 3, w.inside, {1, 2}));
    // [regions, channels, bins of the height, height, bins of the width], and without height
    ASSIGN_OR_RETURN(y, Largest(y, 2, h.inside, {1, 4}));
    ASSIGN_OR_RETURN(auto no_rows, d_.Apply("Unsqueeze", {h.empty}, {{"axes", Dims{1, 3}}}));
    ASSIGN_OR_RETURN(auto no_columns, d_.Apply("Unsqueeze", {w.empty}, {{"axes", Dims{1, 2}}}));
    ASSIGN_OR_RETURN(auto empty, d_.Apply("Or", {no_rows, no_columns}));
    return d_.Apply("Where", {empty, d_.Scalar(d_.call().dtype(0), 0), y});
  }

 private:
  Value Number(double value) { return d_.Scalar(type_, value); }

  // One number of each region.
  absl::StatusOr<Value> Column(int64_t column) {
    HostTensor at(DType::kI64, {});
    at.SetInt(0, column);
    return d_.Apply("Gather", {rois_, d_.Constant(std::move(at))}, {{"axis", int64_t{1}}});
  }

  // The element of x where a region begins or ends, ties away from zero: [regions, 1].
  absl::StatusOr<Value> Border(int64_t column) {
    const double scale = d_.call().attrs().Float("spatial_scale", 1);
    ASSIGN_OR_RETURN(auto x, Column(column));
    ASSIGN_OR_RETURN(x, d_.Apply("Mul", {x, Number(scale)}));
    ASSIGN_OR_RETURN(auto size, d_.Apply("Abs", {x}));
    ASSIGN_OR_RETURN(size, d_.Apply("Add", {size, Number(0.5)}));
    ASSIGN_OR_RETURN(size, d_.Apply("Floor", {size}));
    ASSIGN_OR_RETURN(auto sign, d_.Apply("Sign", {x}));
    ASSIGN_OR_RETURN(x, d_.Apply("Mul", {size, sign}));
    return d_.Apply("Unsqueeze", {x}, {{"axes", Dims{1}}});
  }

  // rounding(bin * (0, 1, .. + first)) + begin, inside of the dim: [regions, bins]
  absl::StatusOr<Value> BinBorder(int64_t i, Value begin, Value bin, double first,
                                  std::string_view rounding) {
    const auto at = static_cast<size_t>(i);
    ASSIGN_OR_RETURN(auto x, CountTo(d_, dims_.bins[at]));
    ASSIGN_OR_RETURN(x, CastTo(d_, x, type_));
    ASSIGN_OR_RETURN(x, d_.Apply("Add", {x, Number(first)}));
    ASSIGN_OR_RETURN(x, d_.Apply("Mul", {bin, x}));
    ASSIGN_OR_RETURN(x, d_.Apply(rounding, {x}));
    ASSIGN_OR_RETURN(x, d_.Apply("Add", {x, begin}));
    ASSIGN_OR_RETURN(x, d_.Apply("Max", {x, Number(0)}));
    return d_.Apply("Min", {x, Number(static_cast<double>(dims_.extents[at]))});
  }

  // Along height (0) or width (1).
  absl::StatusOr<RoiBins> BinsAlong(int64_t i) {
    const auto at = static_cast<size_t>(i);
    // A region is batch, x1, y1, x2, y2.
    ASSIGN_OR_RETURN(auto begin, Border(2 - i));
    ASSIGN_OR_RETURN(auto end, Border(4 - i));
    ASSIGN_OR_RETURN(auto length, d_.Apply("Sub", {end, begin}));
    ASSIGN_OR_RETURN(length, d_.Apply("Add", {length, Number(1)}));
    ASSIGN_OR_RETURN(length, d_.Apply("Max", {length, Number(1)}));
    const auto bins = static_cast<double>(dims_.bins[at]);
    ASSIGN_OR_RETURN(auto bin, d_.Apply("Div", {length, Number(bins)}));
    ASSIGN_OR_RETURN(auto first, BinBorder(i, begin, bin, 0, "Floor"));
    ASSIGN_OR_RETURN(auto last, BinBorder(i, begin, bin, 1, "Ceil"));
    RoiBins out;
    ASSIGN_OR_RETURN(out.empty, d_.Apply("GreaterOrEqual", {first, last}));
    ASSIGN_OR_RETURN(auto place, CountTo(d_, dims_.extents[at]));
    ASSIGN_OR_RETURN(place, CastTo(d_, place, type_));
    const AttrMap behind = {{"axes", Dims{2}}};
    ASSIGN_OR_RETURN(first, d_.Apply("Unsqueeze", {first}, behind));
    ASSIGN_OR_RETURN(last, d_.Apply("Unsqueeze", {last}, behind));
    ASSIGN_OR_RETURN(auto from, d_.Apply("GreaterOrEqual", {place, first}));
    ASSIGN_OR_RETURN(auto to, d_.Apply("Less", {place, last}));
    ASSIGN_OR_RETURN(out.inside, d_.Apply("And", {from, to}));
    return out;
  }

  // The largest elements along dim `dim` of x in each bin, which take its place; `inside` gets the
  // dims `others` of x with bins.
  absl::StatusOr<Value> Largest(Value x, int64_t dim, Value inside, const Dims& others) {
    const DType type = d_.call().dtype(0);
    const Value lowest = d_.Scalar(type, -std::numeric_limits<double>::infinity());
    ASSIGN_OR_RETURN(x, d_.Apply("Unsqueeze", {x}, {{"axes", Dims{dim}}}));
    ASSIGN_OR_RETURN(inside, d_.Apply("Unsqueeze", {inside}, {{"axes", others}}));
    ASSIGN_OR_RETURN(x, d_.Apply("Where", {inside, x, lowest}));
    return d_.Apply("ReduceMax", {x}, {{"axes", Dims{dim + 1}}, {"keepdims", int64_t{0}}});
  }

  Decomposition& d_;
  const RoiPoolDims& dims_;
  DType type_;  // of places
  Value rois_ = 0;
};

}  // namespace

/// y[r, c, i, j] = the largest element of x[b, c] in bin (i, j) of region r, which is b, x1, y1,
/// x2, y2 in units of 1 / spatial_scale elements, ends included; bins that share elements where
/// they do not divide; 0 where a bin lies outside
OpDef DefineMaxRoiPool() {
  return {.name = "MaxRoiPool",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "pooled_shape", .kind = ParamSpec::kInts, .required = true},
                     {.name = "spatial_scale", .kind = ParamSpec::kFloat}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(RoiPoolDims dims, RoiPoolDimsOf(d.call()));
            return RoiPooler(d, dims).Run();
          }};
}

}  // namespace fusion
