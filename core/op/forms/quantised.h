#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Common steps of the ops of quantised models. A quantised value q, an 8-bit integer, represents
/// the number (q - zero point) * scale. (De)QuantizeLinear also take 16-bit integers. A function
/// that takes the number of an input returns InvalidArgument, naming the input, if it does not fit.

/// Input `input`, a scale or a zero point, reshaped to broadcast to tensors of `rank` dims. It must
/// hold one value, or one for each of the `extent` coordinates along `axis`; else InvalidArgument.
absl::StatusOr<Decomposition::Value> QuantisationOf(Decomposition& d, int input, int rank, int axis,
                                                    const Dim& extent);

/// The dim of input 0 along which the scales of (De)QuantizeLinear vary: attribute "axis". It is
/// ignored if input 1 holds a single scale.
struct QuantisedAxis {
  int rank = 0;
  int axis = 0;
  Dim extent;
};
/// InvalidArgument if "axis" is out of range.
absl::StatusOr<QuantisedAxis> QuantisedAxisOf(const OpCall& call);

/// Input `input`, a scale or a zero point, to broadcast to tensors like input 0. Without attribute
/// "block_size" (or 0): as QuantisationOf. Else it has the rank of input 0 and one value for each
/// block of "block_size" elements along the axis; the last block may be shorter. Unimplemented for
/// blocks with symbolic dims.
absl::StatusOr<Decomposition::Value> BlockwiseQuantisationOf(Decomposition& d, int input,
                                                             const QuantisedAxis& along);

/// The element type whose ONNX number is attribute `name`; `fallback` if it is absent or 0.
/// Unimplemented for an unsupported type.
absl::StatusOr<DType> QuantisedType(const OpCall& call, std::string_view name, DType fallback);

/// q - zero_point in i32, with broadcasting. A negative `zero_point` means none.
absl::StatusOr<Decomposition::Value> WithoutZeroPoint(Decomposition& d, Decomposition::Value q,
                                                      Decomposition::Value zero_point);

/// a / b, both of one float type, rounded to that type as an IEEE division. A later rounding to an
/// integer depends on the last bit. f32 is divided in f64 and cast: double rounding gives the same
/// result (Figueroa 1995).
absl::StatusOr<Decomposition::Value> RoundedQuotient(Decomposition& d, Decomposition::Value a,
                                                     Decomposition::Value b);

/// round(x), ties to even, plus `zero_point`, saturated to `type`. A negative `zero_point` means
/// none.
absl::StatusOr<Decomposition::Value> Quantised(Decomposition& d, Decomposition::Value x,
                                               Decomposition::Value zero_point, DType type);

/// Input numbers of two quantised operands x and w and of their zero points, which may be absent.
struct QuantisedOperands {
  int x = 0;
  int w = 1;
  int x_zero = 2;
  int w_zero = 3;
};

/// MatMul(x - zero point, w - zero point) in i32. A zero point holds one value or one for each row
/// of x, or column of w.
absl::StatusOr<Decomposition::Value> QuantisedProduct(Decomposition& d,
                                                      const QuantisedOperands& operands);
/// Convolution of x - zero point by w - zero point in i32 (core/op/forms/convolution.h). x must be
/// input 0. The zero point of x is one value, that of w one value or one for each output channel.
absl::StatusOr<Decomposition::Value> QuantisedConvolution(Decomposition& d,
                                                          const QuantisedOperands& operands);
/// Quantises `sums` (i32 sums of products of the operands) with the inputs `scale` and `zero`, one
/// value each. `operand_scale` is the product of both operand scales; it broadcasts to `sums`. The
/// result has the type of input `zero`.
absl::StatusOr<Decomposition::Value> Requantised(Decomposition& d, Decomposition::Value sums,
                                                 Decomposition::Value operand_scale, int scale,
                                                 int zero);

/// Quantised tensors of ONNX Runtime's ops: one scale and one zero point for the whole tensor. An
/// absent zero point means 0.

/// Input numbers of a quantised tensor.
struct QuantisedTensor {
  int value = 0;
  int scale = 1;
  int zero = 2;
};
/// (value - zero point) * scale in `type`, exact in f64. Sums and products of such f64 values are
/// exact too, so that the rounded result is well defined. Use f32 for functions that round anyway.
absl::StatusOr<Decomposition::Value> Dequantised(Decomposition& d, const QuantisedTensor& x,
                                                 DType type);
/// Quantises `y` to `type` with the inputs `scale` and `zero`; the latter may be absent.
absl::StatusOr<Decomposition::Value> QuantisedBy(Decomposition& d, Decomposition::Value y,
                                                 int scale, int zero, DType type);
/// Definition of a quantised y = op(x). Inputs: x, scale and zero point of x, scale and zero point
/// of y. `steps` computes op on the dequantised x, of type `type`.
OpDef QuantisedUnaryOp(
    std::string name, DType type, std::vector<ParamSpec> params,
    std::function<absl::StatusOr<Decomposition::Value>(Decomposition& d, Decomposition::Value x)>
        steps);
/// Definition of a quantised c = op(a, b) with broadcasting. Inputs: a, its scale and zero point,
/// b, its scale and zero point, scale and zero point of c.
OpDef QuantisedBinaryOp(std::string name, std::string_view op);

/// a_scale * b_scale, reshaped to broadcast to a product of `rank` dims. `a_scale` is a value of
/// the decomposition with one element; `b_scale` is the number of an input with one value, or one
/// for each column of input `b`.
absl::StatusOr<Decomposition::Value> ProductScale(Decomposition& d, Decomposition::Value a_scale,
                                                  int b, int b_scale, int rank);
/// QuantisedProduct(operands) * ProductScale in the type of the scales, plus input `bias`, which
/// may be absent. `a_scale` has one element.
absl::StatusOr<Decomposition::Value> ProductToFloat(Decomposition& d,
                                                    const QuantisedOperands& operands,
                                                    Decomposition::Value a_scale, int b_scale,
                                                    int bias);

/// InvalidArgument unless input `i` is u8 or i8.
absl::Status CheckQuantised(const OpCall& call, int i);

}  // namespace fusion
