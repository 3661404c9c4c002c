#include "core/op/forms/sampling.h"

#include "core/op/forms.h"

namespace fusion {
namespace {

using Value = Decomposition::Value;

// The coefficient of Keys' cubic filter that GridSample is defined with.
constexpr double kCubicCoefficient = -0.75;

/// The attributes of the internal ops, read back.
struct SampleParams {
  SampledDim dim;
  int64_t offset = 0;
};

std::vector<ParamSpec> SampleParamSpecs() {
  return {{.name = "extent", .kind = ParamSpec::kInt, .required = true},
          {.name = "padding", .kind = ParamSpec::kInt, .required = true},
          {.name = "filter", .kind = ParamSpec::kInt, .required = true},
          {.name = "align_corners", .kind = ParamSpec::kInt, .required = true},
          {.name = "offset", .kind = ParamSpec::kInt, .required = true}};
}

absl::StatusOr<Value> ApplySample(Decomposition& d, std::string_view op, const SampledDim& dim,
                                  int64_t offset, Value x) {
  return d.Apply(op, {x},
                 {{"extent", dim.extent},
                  {"padding", static_cast<int64_t>(dim.padding)},
                  {"filter", static_cast<int64_t>(dim.filter)},
                  {"align_corners", int64_t{dim.align_corners ? 1 : 0}},
                  {"offset", offset}});
}

absl::StatusOr<SampleParams> ParamsOf(const OpCall& call) {
  const int64_t padding = call.attrs().Int("padding", 0);
  const int64_t filter = call.attrs().Int("filter", 0);
  SampleParams out;
  out.dim.extent = call.attrs().Int("extent", 0);
  out.dim.align_corners = call.attrs().Int("align_corners", 0) != 0;
  out.offset = call.attrs().Int("offset", 0);
  if (!IsFloat(call.dtype(0)) || out.dim.extent < 1 || out.dim.extent > kMaxExtent || padding < 0 ||
      padding > static_cast<int64_t>(SamplePadding::kReflection) || filter < 0 ||
      filter > static_cast<int64_t>(SampleFilter::kCubic)) {
    return InvalidArgument("coordinates ", call.in(0).ToString(), " in a dim of extent ",
                           out.dim.extent, ", expected a float type and 1..", kMaxExtent);
  }
  out.dim.padding = static_cast<SamplePadding>(padding);
  out.dim.filter = static_cast<SampleFilter>(filter);
  return out;
}

OpDef SampleOp(std::string name, Expr (*value)(const SampleParams& params, const Expr& x)) {
  return {.name = std::move(name),
          .params = SampleParamSpecs(),
          .internal = true,
          .body = [value](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            ASSIGN_OR_RETURN(SampleParams params, ParamsOf(call));
            return ElementwiseBody(
                call, [&](const std::vector<Expr>& in) { return value(params, in[0]); });
          }};
}

Expr Clamped(const Expr& x, double low, double high) {
  return Expr::Binary(ScalarOp::kMin, Expr::Binary(ScalarOp::kMax, x, ConstLike(x, low)),
                      ConstLike(x, high));
}

double LastOf(const SampledDim& dim) { return static_cast<double>(dim.extent - 1); }

// Where the dim begins and ends.
double LowerEnd(const SampledDim& dim) { return dim.align_corners ? 0 : -0.5; }
double UpperEnd(const SampledDim& dim) { return LastOf(dim) - LowerEnd(dim); }

// x mirrored at the ends until it lies between them.
Expr Reflected(const SampledDim& dim, const Expr& x) {
  const double low = LowerEnd(dim);
  const double span = UpperEnd(dim) - low;
  if (span == 0) return ConstLike(x, low);
  const Expr period = ConstLike(x, 2 * span);
  Expr distance = Expr::Unary(ScalarOp::kAbs, x - ConstLike(x, low));
  Expr within = distance - period * Expr::Unary(ScalarOp::kFloor, distance / period);
  return ConstLike(x, low) + Expr::Binary(ScalarOp::kMin, within, period - within);
}

Expr Rounded(SampleFilter filter, const Expr& x) {
  return filter == SampleFilter::kNearest ? Expr::Unary(ScalarOp::kRound, x) : x;
}

Expr CoordinateOf(const SampleParams& params, const Expr& place) {
  const SampledDim& dim = params.dim;
  const Expr one = ConstLike(place, 1);
  const Expr half = ConstLike(place, 0.5);
  Expr x = dim.align_corners
               ? (place + one) * half * ConstLike(place, LastOf(dim))
               : ((place + one) * ConstLike(place, static_cast<double>(dim.extent)) - one) * half;
  x = Rounded(dim.filter, x);
  if (dim.padding == SamplePadding::kZeros) return x;
  if (dim.padding == SamplePadding::kReflection) return Reflected(dim, x);
  Expr inside = Clamped(x, 0, LastOf(dim));
  if (dim.filter != SampleFilter::kCubic) return inside;
  // Between the border's centre and the end a cubic filter still sees where exactly.
  Expr outside =
      Expr::Binary(ScalarOp::kOr, Expr::Binary(ScalarOp::kLt, x, ConstLike(x, LowerEnd(dim))),
                   Expr::Binary(ScalarOp::kGt, x, ConstLike(x, UpperEnd(dim))));
  return Expr::Select(outside, inside, x);
}

// The element at the offset, as a float.
Expr ElementOf(const SampleParams& params, const Expr& x) {
  return Expr::Unary(ScalarOp::kFloor, x) + ConstLike(x, static_cast<double>(params.offset));
}

Expr IndexOf(const SampleParams& params, const Expr& x) {
  Expr element = ElementOf(params, x);
  if (params.dim.padding == SamplePadding::kReflection) element = Reflected(params.dim, element);
  return Expr::Cast(Clamped(element, 0, LastOf(params.dim)), DType::kI64);
}

Expr InsideOf(const SampleParams& params, const Expr& x) {
  Expr element = ElementOf(params, x);
  return Expr::Binary(ScalarOp::kAnd, Expr::Binary(ScalarOp::kGe, element, ConstLike(x, 0)),
                      Expr::Binary(ScalarOp::kLe, element, ConstLike(x, LastOf(params.dim))));
}

Expr WeightOf(const SampleParams& params, const Expr& x) {
  const Expr behind = x - Expr::Unary(ScalarOp::kFloor, x);
  const auto offset = static_cast<double>(params.offset);
  // How far the element is, from 0 to 2.
  Expr s = params.offset <= 0 ? behind - ConstLike(x, offset) : ConstLike(x, offset) - behind;
  const Expr one = ConstLike(x, 1);
  if (params.dim.filter != SampleFilter::kCubic) return one - s;
  const double a = kCubicCoefficient;
  if (params.offset == 0 || params.offset == 1) {
    return (ConstLike(x, a + 2) * s - ConstLike(x, a + 3)) * s * s + one;
  }
  return ((ConstLike(x, a) * s - ConstLike(x, 5 * a)) * s + ConstLike(x, 8 * a)) * s -
         ConstLike(x, 4 * a);
}

}  // namespace

SampleTaps TapsOf(SampleFilter filter) {
  if (filter == SampleFilter::kLinear) return {.first = 0, .count = 2};
  if (filter == SampleFilter::kCubic) return {.first = -1, .count = 4};
  return {.first = 0, .count = 1};
}

absl::StatusOr<Value> SampleCoordinate(Decomposition& d, const SampledDim& dim, Value x) {
  return ApplySample(d, "SampleCoordinate", dim, 0, x);
}

absl::StatusOr<Value> SampleIndex(Decomposition& d, const SampledDim& dim, int64_t offset,
                                  Value x) {
  return ApplySample(d, "SampleIndex", dim, offset, x);
}

absl::StatusOr<Value> SampleInside(Decomposition& d, const SampledDim& dim, int64_t offset,
                                   Value x) {
  return ApplySample(d, "SampleInside", dim, offset, x);
}

absl::StatusOr<Value> SampleWeight(Decomposition& d, const SampledDim& dim, int64_t offset,
                                   Value x) {
  return ApplySample(d, "SampleWeight", dim, offset, x);
}

OpDef SampleCoordinateOp() { return SampleOp("SampleCoordinate", CoordinateOf); }
OpDef SampleIndexOp() { return SampleOp("SampleIndex", IndexOf); }
OpDef SampleInsideOp() { return SampleOp("SampleInside", InsideOf); }
OpDef SampleWeightOp() { return SampleOp("SampleWeight", WeightOf); }

}  // namespace fusion
