#include "core/op/forms/quantised.h"

#include <limits>

#include "core/op/forms.h"
#include "core/op/forms/convolution.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {

absl::StatusOr<Decomposition::Value> QuantisationOf(Decomposition& d, int input, int rank, int axis,
                                                    const Dim& extent) {
  const Shape& shape = d.call().shape(input);
  const bool one = shape == Shape(std::vector<Dim>{}) || shape == Shape({Dim(1)});
  if (!one && shape != Shape({extent})) {
    return InvalidArgument("input ", input, " is ", d.call().in(input).ToString(),
                           ", expected one value or one for each of the ", extent.ToString(),
                           " along dim ", axis);
  }
  Dims axes;
  if (shape.rank() == 0) return d.in(input);
  if (one) return d.Apply("Reshape", {d.in(input)}, {{"shape", Dims()}, {"allowzero", int64_t{1}}});
  for (int i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  if (axes.empty()) return d.in(input);
  return d.Apply("Unsqueeze", {d.in(input)}, {{"axes", axes}});
}

absl::StatusOr<QuantisedAxis> QuantisedAxisOf(const OpCall& call) {
  QuantisedAxis out{.rank = call.shape(0).rank(), .axis = 0, .extent = Dim(1)};
  if (out.rank == 0) return out;
  if (call.shape(1).rank() > 0 && call.shape(1) != Shape({Dim(1)})) {
    const int64_t axis = call.attrs().Int("axis", out.rank > 1 ? 1 : 0);
    ASSIGN_OR_RETURN(out.axis, call.NormaliseAxis(axis, out.rank));
  }
  out.extent = call.shape(0).dim(out.axis);
  return out;
}

absl::StatusOr<Decomposition::Value> BlockwiseQuantisationOf(Decomposition& d, int input,
                                                             const QuantisedAxis& along) {
  const OpCall& call = d.call();
  const int64_t block = call.attrs().Int("block_size", 0);
  if (block == 0) return QuantisationOf(d, input, along.rank, along.axis, along.extent);
  ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
  const auto at = static_cast<size_t>(along.axis);
  const int64_t extent = x.empty() ? 1 : x[at];
  Dims wanted = x;
  if (block > 0 && !x.empty()) wanted[at] = extent == 0 ? 0 : (extent - 1) / block + 1;
  if (block < 0 || block > kMaxExtent || x.empty() || call.shape(input) != Shape(wanted)) {
    return InvalidArgument("input ", input, " is ", call.in(input).ToString(),
                           " and attribute \"block_size\" is ", block, ", expected ",
                           Shape(wanted).ToString(), " for input 0 ", call.in(0).ToString());
  }
  if (block > extent && extent > 0) return d.in(input);  // one block, and not a whole one
  const int64_t blocks = wanted[at];
  Dims repeated = wanted;
  repeated.insert(repeated.begin() + along.axis + 1, block);
  ASSIGN_OR_RETURN(auto y,
                   d.Apply("Unsqueeze", {d.in(input)}, {{"axes", Dims{int64_t{along.axis} + 1}}}));
  ASSIGN_OR_RETURN(y, d.Apply("Expand", {y}, {{"shape", repeated}}));
  wanted[at] = blocks * block;
  ASSIGN_OR_RETURN(y, d.Apply("Reshape", {y}, {{"shape", wanted}, {"allowzero", int64_t{1}}}));
  return wanted[at] == extent ? y : SliceAlong(d, y, along.axis, 0, extent);
}

absl::StatusOr<DType> QuantisedType(const OpCall& call, std::string_view name, DType fallback) {
  const int64_t code = call.attrs().Int(name, 0);
  if (code == 0) return fallback;
  if (std::optional<DType> type = DTypeFromOnnx(code)) return *type;
  return Unimplemented("attribute ", Quote(name), " is element type ", OnnxTypeName(code),
                       ", which is not supported");
}

absl::StatusOr<Decomposition::Value> WithoutZeroPoint(Decomposition& d, Decomposition::Value q,
                                                      Decomposition::Value zero_point) {
  ASSIGN_OR_RETURN(auto wide, CastTo(d, q, DType::kI32));
  if (zero_point < 0) return wide;
  ASSIGN_OR_RETURN(auto zero, CastTo(d, zero_point, DType::kI32));
  return d.Apply("Sub", {wide, zero});
}

absl::StatusOr<Decomposition::Value> RoundedQuotient(Decomposition& d, Decomposition::Value a,
                                                     Decomposition::Value b) {
  const DType type = d.type(a).dtype;
  if (type != DType::kF32) return d.Apply("Div", {a, b});
  ASSIGN_OR_RETURN(a, CastTo(d, a, DType::kF64));
  ASSIGN_OR_RETURN(b, CastTo(d, b, DType::kF64));
  ASSIGN_OR_RETURN(auto quotient, d.Apply("Div", {a, b}));
  return CastTo(d, quotient, type);
}

absl::StatusOr<Decomposition::Value> Quantised(Decomposition& d, Decomposition::Value x,
                                               Decomposition::Value zero_point, DType type) {
  ASSIGN_OR_RETURN(auto y, d.Apply("Round", {x}));
  if (zero_point >= 0) {
    // A half holds not every integer of 16 bits.
    ASSIGN_OR_RETURN(y, CastTo(d, y, StatisticsType(d.type(y).dtype)));
    ASSIGN_OR_RETURN(auto zero, CastTo(d, zero_point, d.type(y).dtype));
    ASSIGN_OR_RETURN(y, d.Apply("Add", {y, zero}));
  }
  if (IsNarrowInteger(type)) {  // to which a cast does not saturate
    const DType real = d.type(y).dtype;
    const double infinite = std::numeric_limits<double>::infinity();
    ASSIGN_OR_RETURN(y, d.Apply("Max", {y, d.Scalar(real, RoundTo(type, -infinite))}));
    ASSIGN_OR_RETURN(y, d.Apply("Min", {y, d.Scalar(real, RoundTo(type, infinite))}));
  }
  return CastTo(d, y, type);
}

namespace {

// Input `i`, 8-bit integers, without zero point `zero`, which may be absent: one for all or one for
// each coordinate along `axis`.
absl::StatusOr<Decomposition::Value> WideOperand(Decomposition& d, int i, int zero, int axis) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(CheckQuantised(call, i));
  Decomposition::Value point = -1;
  if (call.has_input(zero)) {
    RETURN_IF_ERROR(call.CheckSameType(i, zero));
    ASSIGN_OR_RETURN(point,
                     QuantisationOf(d, zero, call.shape(i).rank(), axis, call.shape(i).dim(axis)));
  }
  return WithoutZeroPoint(d, d.in(i), point);
}

}  // namespace

absl::StatusOr<Decomposition::Value> QuantisedProduct(Decomposition& d,
                                                      const QuantisedOperands& operands) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(call.CheckRankAtLeast(operands.x, 1));
  RETURN_IF_ERROR(call.CheckRankAtLeast(operands.w, 1));
  const int rank = call.shape(operands.x).rank();
  ASSIGN_OR_RETURN(auto x,
                   WideOperand(d, operands.x, operands.x_zero, rank > 1 ? rank - 2 : rank - 1));
  ASSIGN_OR_RETURN(auto w,
                   WideOperand(d, operands.w, operands.w_zero, call.shape(operands.w).rank() - 1));
  return d.Apply("MatMul", {x, w});
}

absl::StatusOr<Decomposition::Value> QuantisedConvolution(Decomposition& d,
                                                          const QuantisedOperands& operands) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(call.CheckRankAtLeast(operands.x, 3));
  RETURN_IF_ERROR(call.CheckRankAtLeast(operands.w, 3));
  if (call.has_input(operands.x_zero) && call.shape(operands.x_zero) != Shape(std::vector<Dim>{}) &&
      call.shape(operands.x_zero) != Shape({Dim(1)})) {
    return InvalidArgument("input ", operands.x_zero, " is ", call.in(operands.x_zero).ToString(),
                           ", expected one value");
  }
  ASSIGN_OR_RETURN(auto x, WideOperand(d, operands.x, operands.x_zero, 0));
  ASSIGN_OR_RETURN(auto w, WideOperand(d, operands.w, operands.w_zero, 0));
  return Convolved(d, x, w, operands.w);
}

absl::StatusOr<Decomposition::Value> Requantised(Decomposition& d, Decomposition::Value sums,
                                                 Decomposition::Value operand_scale, int scale,
                                                 int zero) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(CheckQuantised(call, zero));
  ASSIGN_OR_RETURN(auto y_scale, QuantisationOf(d, scale, 0, 0, Dim(1)));
  ASSIGN_OR_RETURN(auto y_zero, QuantisationOf(d, zero, 0, 0, Dim(1)));
  ASSIGN_OR_RETURN(auto factor, d.Apply("Div", {operand_scale, y_scale}));
  ASSIGN_OR_RETURN(auto y, CastTo(d, sums, d.type(factor).dtype));
  ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, factor}));
  return Quantised(d, y, y_zero, call.dtype(zero));
}

absl::StatusOr<Decomposition::Value> Dequantised(Decomposition& d, const QuantisedTensor& x,
                                                 DType type) {
  RETURN_IF_ERROR(CheckQuantised(d.call(), x.value));
  Decomposition::Value zero = -1;
  if (d.call().has_input(x.zero)) {
    RETURN_IF_ERROR(d.call().CheckSameType(x.value, x.zero));
    ASSIGN_OR_RETURN(zero, QuantisationOf(d, x.zero, 0, 0, Dim(1)));
  }
  ASSIGN_OR_RETURN(auto scale, QuantisationOf(d, x.scale, 0, 0, Dim(1)));
  ASSIGN_OR_RETURN(scale, CastTo(d, scale, type));
  ASSIGN_OR_RETURN(auto wide, WithoutZeroPoint(d, d.in(x.value), zero));
  ASSIGN_OR_RETURN(auto y, CastTo(d, wide, type));
  return d.Apply("Mul", {y, scale});
}

absl::StatusOr<Decomposition::Value> QuantisedBy(Decomposition& d, Decomposition::Value y,
                                                 int scale, int zero, DType type) {
  Decomposition::Value point = -1;
  if (d.call().has_input(zero)) {
    if (d.call().dtype(zero) != type) {
      return InvalidArgument("input ", zero, " is ", d.call().in(zero).ToString(), ", expected ",
                             DTypeName(type));
    }
    ASSIGN_OR_RETURN(point, QuantisationOf(d, zero, 0, 0, Dim(1)));
  }
  ASSIGN_OR_RETURN(auto step, QuantisationOf(d, scale, 0, 0, Dim(1)));
  ASSIGN_OR_RETURN(step, CastTo(d, step, d.type(y).dtype));
  ASSIGN_OR_RETURN(y, RoundedQuotient(d, y, step));
  return Quantised(d, y, point, type);
}

OpDef QuantisedUnaryOp(
    std::string name, DType type, std::vector<ParamSpec> params,
    std::function<absl::StatusOr<Decomposition::Value>(Decomposition& d, Decomposition::Value x)>
        steps) {
  return {.name = std::move(name),
          .min_inputs = 2,
          .max_inputs = 5,
          .params = std::move(params),
          .decompose = [type, steps = std::move(steps)](
                           Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            if (!d.call().has_input(3)) {
              return InvalidArgument("input 3 (the scale of y) is absent but required");
            }
            ASSIGN_OR_RETURN(auto y, Dequantised(d, {.value = 0, .scale = 1, .zero = 2}, type));
            ASSIGN_OR_RETURN(y, steps(d, y));
            return QuantisedBy(d, y, 3, 4, d.call().dtype(0));
          }};
}

OpDef QuantisedBinaryOp(std::string name, std::string_view op) {
  return {
      .name = std::move(name),
      .min_inputs = 2,
      .max_inputs = 8,
      .decompose = [op =
                        std::string(op)](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        for (int i : {3, 4, 6}) {
          if (!d.call().has_input(i)) {
            return InvalidArgument("input ", i, " is absent but required");
          }
        }
        RETURN_IF_ERROR(d.call().CheckSameType(0, 3));
        ASSIGN_OR_RETURN(auto a, Dequantised(d, {.value = 0, .scale = 1, .zero = 2}, DType::kF64));
        ASSIGN_OR_RETURN(auto b, Dequantised(d, {.value = 3, .scale = 4, .zero = 5}, DType::kF64));
        ASSIGN_OR_RETURN(auto c, d.Apply(op, {a, b}));
        return QuantisedBy(d, c, 6, 7, d.call().dtype(0));
      }};
}

absl::StatusOr<Decomposition::Value> ProductScale(Decomposition& d, Decomposition::Value a_scale,
                                                  int b, int b_scale, int rank) {
  const Shape& shape = d.call().shape(b);
  const int axis = shape.rank() - 1;
  ASSIGN_OR_RETURN(auto scale, QuantisationOf(d, b_scale, rank, rank - 1, shape.dim(axis)));
  // Rounded exactly once: a product beyond f32 is infinite however it is computed.
  const DType type = d.type(scale).dtype;
  ASSIGN_OR_RETURN(a_scale, CastTo(d, a_scale, DType::kF64));
  ASSIGN_OR_RETURN(scale, CastTo(d, scale, DType::kF64));
  ASSIGN_OR_RETURN(scale, d.Apply("Mul", {a_scale, scale}));
  return CastTo(d, scale, type);
}

absl::StatusOr<Decomposition::Value> ProductToFloat(Decomposition& d,
                                                    const QuantisedOperands& operands,
                                                    Decomposition::Value a_scale, int b_scale,
                                                    int bias) {
  ASSIGN_OR_RETURN(auto y, QuantisedProduct(d, operands));
  const int rank = d.type(y).shape.rank();
  ASSIGN_OR_RETURN(auto scale, ProductScale(d, a_scale, operands.w, b_scale, rank));
  ASSIGN_OR_RETURN(y, CastTo(d, y, d.type(scale).dtype));
  ASSIGN_OR_RETURN(y, d.Apply("Mul", {y, scale}));
  return d.call().has_input(bias) ? PlusBias(d, y, bias) : y;
}

absl::Status CheckQuantised(const OpCall& call, int i) {
  if (call.dtype(i) == DType::kU8 || call.dtype(i) == DType::kI8) return absl::OkStatus();
  return InvalidArgument("input ", i, " is ", DTypeName(call.dtype(i)), ", expected u8 or i8");
}

}  // namespace fusion
