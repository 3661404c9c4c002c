#include "core/op/indexed/signal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/threads/job.h"
#include "core/op/forms.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {

namespace {

// The last two dims of a signal.
struct SignalDims {
  int64_t extent = 0;
  int64_t parts = 0;  // 1: real, 2: real and imaginary
};

absl::StatusOr<SignalDims> SignalDimsOf(const TensorType& type, const FourierTransform& how) {
  if (!IsFloat(type.dtype)) {
    return InvalidArgument("the signal is ", DTypeName(type.dtype), ", expected a float type");
  }
  const int rank = type.shape.rank();
  if (rank < 2) {
    return InvalidArgument("the signal ", type.ToString(), " has rank ", rank,
                           ", expected at least 2");
  }
  const Dim& extent = type.shape.dim(rank - 2);
  const Dim& parts = type.shape.dim(rank - 1);
  if (!extent.is_static() || !parts.is_static()) {
    return Unimplemented("a transform along the symbolic dim ",
                         (extent.is_static() ? parts : extent).ToString(), " of ", type.ToString());
  }
  if (parts != Dim(1) && parts != Dim(2)) {
    return InvalidArgument("the last dim of the signal ", type.ToString(), " is ", parts.ToString(),
                           ", expected 1 (real) or 2 (complex)");
  }
  if (how.onesided && !how.inverse && parts != Dim(1)) {
    return InvalidArgument("attribute \"onesided\" is 1 for the complex signal ", type.ToString(),
                           ", expected 0");
  }
  if (how.length < 1 || how.length > kMaxExtent) {
    return InvalidArgument("the length of the transform is ", how.length, ", expected 1..",
                           kMaxExtent);
  }
  return SignalDims{.extent = std::min(extent.value(), how.most()), .parts = parts.value()};
}

// [n * parts of x, bins * parts of y]: e^(-2 pi i k n / length) as the factors of real and
// imaginary parts.
absl::StatusOr<HostTensor> FourierMatrix(DType type, const SignalDims& x,
                                         const FourierTransform& how) {
  const int64_t rows = x.extent * x.parts;
  const int64_t columns = how.bins() * how.parts();
  if (rows > kMaxFourierElements || columns > kMaxFourierElements ||
      rows * columns > kMaxFourierElements) {
    return Unimplemented("a transform of ", x.extent, " elements to ", how.bins(),
                         " takes a matrix of ", rows, " times ", columns, "; at most ",
                         kMaxFourierElements, " elements are supported");
  }
  const auto length = static_cast<double>(how.length);
  const double size = how.inverse ? 1 / length : 1;
  std::vector<double> cosine;
  std::vector<double> sine;
  for (int64_t i = 0; i < how.length; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / length;
    cosine.push_back(size * std::cos(angle));
    sine.push_back(size * (how.inverse ? std::sin(angle) : -std::sin(angle)));
  }
  HostTensor matrix(type, {rows, columns});
  for (int64_t n = 0; n < x.extent; ++n) {
    Job::Step(columns);
    for (int64_t k = 0; k < how.bins(); ++k) {
      const auto turn = static_cast<size_t>(n * k % how.length);
      const int64_t real = n * x.parts * columns + how.parts() * k;
      if (how.to_real()) {
        // Of a pair of conjugates twice the real part.
        const double times = n == 0 || 2 * n == how.length ? 1 : 2;
        matrix.SetDouble(real, times * cosine[turn]);
        if (x.parts == 2) matrix.SetDouble(real + columns, -times * sine[turn]);
        continue;
      }
      matrix.SetDouble(real, cosine[turn]);
      matrix.SetDouble(real + 1, sine[turn]);
      if (x.parts == 1) continue;
      matrix.SetDouble(real + columns, -sine[turn]);
      matrix.SetDouble(real + columns + 1, cosine[turn]);
    }
  }
  return matrix;
}

}  // namespace

absl::Status NormaliseOutputType(OnnxCall& call) {
  const auto* code = call.attrs.Find<int64_t>("output_datatype");
  if (code == nullptr && call.attrs.Has("output_datatype")) {
    return InvalidArgument("attribute \"output_datatype\" is not the number of an element type");
  }
  if (code == nullptr) return absl::OkStatus();
  auto dtype = DTypeFromOnnx(*code);
  if (!dtype)
    return Unimplemented("attribute \"output_datatype\" is element type ", OnnxTypeName(*code),
                         ", which is not supported");
  call.attrs.Set("output_datatype", std::string(DTypeName(*dtype)));
  return absl::OkStatus();
}

absl::StatusOr<DType> OutputTypeOf(const OpCall& call) {
  const auto* name = call.attrs().Find<std::string>("output_datatype");
  if (name == nullptr) return DType::kF32;
  auto dtype = ParseDType(*name);
  if (!dtype || *dtype == DType::kBool) {
    return InvalidArgument("attribute \"output_datatype\" is ", QuoteShort(*name),
                           ", expected a numeric type");
  }
  return *dtype;
}

OpDef CosineWindow(std::string name, double a0, double a1, double a2) {
  return {.name = std::move(name),
          .min_inputs = 0,
          .max_inputs = 0,
          .params = {{.name = "size", .kind = ParamSpec::kInt, .onnx_input = 0, .required = true},
                     {.name = "periodic", .kind = ParamSpec::kInt},
                     {.name = "output_datatype", .kind = ParamSpec::kString}},
          .min_opset = 17,
          .body = [=](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            ASSIGN_OR_RETURN(DType type, OutputTypeOf(call));
            const int64_t size = call.attrs().Int("size", 0);
            if (size < 0 || size > kMaxExtent) {
              return InvalidArgument("size is ", size, ", expected 0..", kMaxExtent);
            }
            const bool periodic = call.attrs().Int("periodic", 1) != 0;
            auto number = [](double value) { return Expr::Const(DType::kF64, value); };
            // The angle and the sum are exact in f64; a cosine in f32 is what kernels are good at.
            const DType cosine = type == DType::kF64 ? DType::kF64 : DType::kF32;
            Expr i = Expr::Cast(Expr::Axis(0), DType::kF64);
            Expr turn = number(static_cast<double>(periodic ? size : size - 1));
            auto wave = [&](double turns, double amplitude) {
              Expr angle = (i * number(turns * 2 * std::numbers::pi)) / turn;
              Expr cos = Expr::Unary(ScalarOp::kCos, Expr::Cast(angle, cosine));
              return Expr::Cast(cos, DType::kF64) * number(amplitude);
            };
            Expr y = number(a0) - wave(1, a1);
            if (a2 != 0) y = y + wave(2, a2);
            LoopBody body;
            body.axes = {{"i", Dim(size)}};
            body.write = {IndexExpr::Axis(0)};
            body.value = Expr::Cast(y, type);
            return body;
          },
          .normalise = NormaliseOutputType};
}

absl::StatusOr<Decomposition::Value> Transformed(Decomposition& d, Decomposition::Value x,
                                                 const FourierTransform& how) {
  const TensorType type = d.type(x);
  ASSIGN_OR_RETURN(SignalDims signal, SignalDimsOf(type, how));
  ASSIGN_OR_RETURN(HostTensor matrix, FourierMatrix(type.dtype, signal, how));
  const int axis = type.shape.rank() - 2;
  if (type.shape.dim(axis) != Dim(signal.extent)) {
    ASSIGN_OR_RETURN(x, SliceAlong(d, x, axis, 0, signal.extent));
  }
  Dims dims(static_cast<size_t>(axis), 0);  // 0: as it is
  dims.push_back(signal.extent * signal.parts);
  ASSIGN_OR_RETURN(x, d.Apply("Reshape", {x}, {{"shape", dims}}));
  ASSIGN_OR_RETURN(auto y, d.Apply("MatMul", {x, d.Constant(std::move(matrix))}));
  dims.back() = how.bins();
  dims.push_back(how.parts());
  return d.Apply("Reshape", {y}, {{"shape", dims}});
}

}  // namespace fusion
