#include "core/op/indexed/random_numbers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/op/forms.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

constexpr DType kWord = DType::kU32;

Expr Word(uint64_t value) { return Expr::ConstInt(kWord, static_cast<int64_t>(value)); }

// x ^ (x >> bits)
Expr Folded(const Expr& x, int bits) {
  return Expr::Binary(ScalarOp::kBitXor, x, x / Word(uint64_t{1} << bits));
}

Expr Hash(const Expr& x) {
  Expr h = Folded(x, 16) * Word(0x7feb352d);
  h = Folded(h, 15) * Word(0x846ca68b);
  return Folded(h, 16);
}

// Output `index` of SplitMix64 that starts at `state`.
uint64_t SplitMix(uint64_t state, int index) {
  uint64_t z = state + static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

absl::StatusOr<DType> RandomType(const OpCall& call, bool like) {
  DType type = like && IsFloat(call.dtype(0)) ? call.dtype(0) : DType::kF32;
  if (const auto* name = call.attrs().Find<std::string>("dtype")) {
    const std::optional<DType> given = ParseDType(*name);
    if (!given) return InvalidArgument("attribute \"dtype\" is no element type");
    type = *given;
  } else if (like && !IsFloat(call.dtype(0))) {
    return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                           " and attribute \"dtype\" is absent, expected a float type");
  }
  if (IsFloat(type) && !IsNarrowFloat(type)) return type;
  return InvalidArgument("attribute \"dtype\" is that of ", DTypeName(type),
                         ", expected f16, bf16, f32 or f64");
}

absl::StatusOr<Dims> RandomDims(const OpCall& call, bool like) {
  if (like) return StaticDims(call, 0);
  Dims dims = call.attrs().Ints("shape");
  RETURN_IF_ERROR(CheckedNumElements(dims, DTypeBytes(DType::kF64)).status());
  return dims;
}

}  // namespace

std::vector<ParamSpec> RandomParams(std::vector<std::string> floats, bool like) {
  std::vector<ParamSpec> params = {{.name = "dtype", .kind = ParamSpec::kString},
                                   {.name = "seed", .kind = ParamSpec::kFloat}};
  for (std::string& name : floats) {
    params.push_back({.name = std::move(name), .kind = ParamSpec::kFloat});
  }
  if (!like) params.push_back({.name = "shape", .kind = ParamSpec::kInts, .required = true});
  return params;
}

absl::StatusOr<double> SeedOf(const OpCall& call) {
  const auto* seed = call.attrs().Find<double>("seed");
  if (seed != nullptr) return *seed;
  return Unimplemented("has no attribute \"seed\": give one, or make its result an input");
}

absl::StatusOr<Expr> UniformNumbers(const std::vector<LoopAxis>& axes, double seed, int stream,
                                    DType type) {
  Expr number = Expr::ConstInt(DType::kI64, 0);
  int64_t stride = 1;
  for (size_t k = axes.size(); k-- > 0;) {
    if (!axes[k].extent.is_static()) {
      return Unimplemented("random numbers along the symbolic dim ", axes[k].extent.ToString(),
                           "; bind it");
    }
    number = number + Expr::Axis(static_cast<int>(k)) * Expr::ConstInt(DType::kI64, stride);
    stride *= std::max<int64_t>(axes[k].extent.value(), 1);
  }
  const uint64_t state = std::bit_cast<uint32_t>(static_cast<float>(seed));
  const uint64_t keys = SplitMix(state, stream + 1);
  Expr bits = Expr::Binary(ScalarOp::kBitXor, Expr::Cast(number, kWord), Word(keys >> 32));
  bits = Hash(Hash(bits) + Word(keys & 0xffffffff));
  const Expr high = Expr::Cast(bits / Word(256), DType::kI32);
  return Expr::Cast(high, type) * Expr::Const(type, 0x1p-24);
}

absl::Status NormaliseRandomType(OnnxCall& call) {
  const auto* code = call.attrs.Find<int64_t>("dtype");
  if (code == nullptr) return absl::OkStatus();
  const std::optional<DType> type = DTypeFromOnnx(*code);
  if (!type) {
    return Unimplemented("attribute \"dtype\" is element type ", OnnxTypeName(*code),
                         ", which is not supported");
  }
  call.attrs.Set("dtype", std::string(DTypeName(*type)));
  return absl::OkStatus();
}

namespace {

absl::StatusOr<LoopBody> RandomBody(const OpCall& call, bool like, bool normal) {
  ASSIGN_OR_RETURN(const double seed, SeedOf(call));
  ASSIGN_OR_RETURN(const DType type, RandomType(call, like));
  ASSIGN_OR_RETURN(const Dims dims, RandomDims(call, like));
  const DType work = type == DType::kF64 ? DType::kF64 : DType::kF32;
  LoopBody body;
  std::vector<Dim> extents(dims.begin(), dims.end());
  body.axes = NumberedAxes(extents);
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    body.write.push_back(IndexExpr::Axis(d));
  }
  if (like) {  // of which only the shape counts
    body.reads.resize(1);
    body.reads[0].index = body.write;
  }
  ASSIGN_OR_RETURN(Expr number, UniformNumbers(body.axes, seed, 0, work));
  if (normal) {
    ASSIGN_OR_RETURN(const Expr angle, UniformNumbers(body.axes, seed, 1, work));
    const Expr log = Expr::Unary(ScalarOp::kLog, Expr::Const(work, 1) - number);
    const Expr radius = Expr::Unary(ScalarOp::kSqrt, log * Expr::Const(work, -2));
    number = radius * Expr::Unary(ScalarOp::kCos, angle * Expr::Const(work, 2 * std::numbers::pi));
  }
  const AttrMap& attrs = call.attrs();
  const double from = normal ? attrs.Float("mean", 0) : attrs.Float("low", 0);
  const double spread = normal ? attrs.Float("scale", 1) : attrs.Float("high", 1) - from;
  body.value = Expr::Cast(Expr::Const(work, from) + number * Expr::Const(work, spread), type);
  return body;
}

}  // namespace

OpDef RandomOp(const char* name, bool like, bool normal) {
  const int inputs = like ? 1 : 0;
  return {
      .name = name,
      .min_inputs = inputs,
      .max_inputs = inputs,
      .params =
          normal ? RandomParams({"mean", "scale"}, like) : RandomParams({"low", "high"}, like),
      .body = [like, normal](const OpCall& call, int) { return RandomBody(call, like, normal); },
      .normalise = NormaliseRandomType};
}

bool DrawsNumbers(std::string_view op) {
  constexpr std::array<std::string_view, 5> kOps = {"Bernoulli", "RandomNormal", "RandomNormalLike",
                                                    "RandomUniform", "RandomUniformLike"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

}  // namespace fusion
