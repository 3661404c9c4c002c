#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// What the ops of quantised models share. A quantised value q, an 8-bit integer, stands for
/// (q - zero point) * scale; (De)QuantizeLinear also take integers of 16 bits.

/// A scale or a zero point for tensors of `rank`: one for all, or one for each coordinate along
/// `axis`, whose extent is `extent`. Broadcasts to such tensors. InvalidArgument, naming input
/// `input` of the call, if it is neither.
absl::StatusOr<Decomposition::Value> QuantisationOf(Decomposition& d, int input, int rank, int axis,
                                                    const Dim& extent);

/// Along what the scales of (De)QuantizeLinear run: attribute "axis" of input 0, which means
/// nothing where there is one scale (input 1).
struct QuantisedAxis {
  int rank = 0;
  int axis = 0;
  Dim extent;
};
absl::StatusOr<QuantisedAxis> QuantisedAxisOf(const OpCall& call);

/// A scale or a zero point, input `input`, for tensors like input 0: as QuantisationOf or, with an
/// attribute "block_size" above 0, one for each so many elements along the axis, of a rank like
/// input 0's; the last block may be shorter.
absl::StatusOr<Decomposition::Value> BlockwiseQuantisationOf(Decomposition& d, int input,
                                                             const QuantisedAxis& along);

/// The element type that the attribute `name` is ONNX's number of; `fallback` if it is absent or 0.
absl::StatusOr<DType> QuantisedType(const OpCall& call, std::string_view name, DType fallback);

/// q - zero point in i32, both broadcast; `zero_point` negative: none.
absl::StatusOr<Decomposition::Value> WithoutZeroPoint(Decomposition& d, Decomposition::Value q,
                                                      Decomposition::Value zero_point);

/// a / b, both of one float type, rounded to it as a division of that type is, also where nothing
/// else rounds it: an integer next follows from which side of a half it is on. (Divided in f64 and
/// cast: rounding twice gives the same, Figueroa 1995.)
absl::StatusOr<Decomposition::Value> RoundedQuotient(Decomposition& d, Decomposition::Value a,
                                                     Decomposition::Value b);

/// The nearest integer to `x`, ties to even, plus the zero point, as `type`: what is beyond it
/// becomes its border. `zero_point` negative: none.
absl::StatusOr<Decomposition::Value> Quantised(Decomposition& d, Decomposition::Value x,
                                               Decomposition::Value zero_point, DType type);

/// Two quantised operands of a call by their inputs: x and w and their zero points, which may be
/// absent.
struct QuantisedOperands {
  int x = 0;
  int w = 1;
  int x_zero = 2;
  int w_zero = 3;
};

/// The product of two operands without their zero points, in i32; a zero point for all or, of x,
/// for each row and, of w, for each column.
absl::StatusOr<Decomposition::Value> QuantisedProduct(Decomposition& d,
                                                      const QuantisedOperands& operands);
/// Their convolution in i32 (core/op/forms/convolution.h), x being input 0; a zero point for all
/// or, of w, for each output channel.
absl::StatusOr<Decomposition::Value> QuantisedConvolution(Decomposition& d,
                                                          const QuantisedOperands& operands);
/// What `sums`, in i32, of products of operands stand for, quantised as the call's inputs `scale`
/// and `zero` say; `operand_scale`: the product of the scales of both operands, broadcast.
absl::StatusOr<Decomposition::Value> Requantised(Decomposition& d, Decomposition::Value sums,
                                                 Decomposition::Value operand_scale, int scale,
                                                 int zero);

/// Quantised tensors as ONNX Runtime's operators take them: one scale and one zero point for all of
/// it, the latter perhaps absent, which means 0.

/// A tensor and what quantises it, by the inputs of the call.
struct QuantisedTensor {
  int value = 0;
  int scale = 1;
  int zero = 2;
};
/// What it stands for, in `type`: exactly in f64. Sums and products of such are exact too, and what
/// they are rounded to follows from the definition; f32 is for functions that round anyway.
absl::StatusOr<Decomposition::Value> Dequantised(Decomposition& d, const QuantisedTensor& x,
                                                 DType type);
/// `y` quantised to `type` as the inputs `scale` and `zero` say.
absl::StatusOr<Decomposition::Value> QuantisedBy(Decomposition& d, Decomposition::Value y,
                                                 int scale, int zero, DType type);
/// Definition of y = op(x) of such tensors, `steps` being op of `type`: inputs are x, scale and
/// zero point of x, scale and zero point of y.
OpDef QuantisedUnaryOp(
    std::string name, DType type, std::vector<ParamSpec> params,
    std::function<absl::StatusOr<Decomposition::Value>(Decomposition& d, Decomposition::Value x)>
        steps);
/// Definition of c = op(a, b) with broadcasting: inputs are each operand with scale and zero point,
/// scale and zero point of c.
OpDef QuantisedBinaryOp(std::string name, std::string_view op);

/// The scale of a product's operands, inputs `a_scale` (one value) and `b_scale` (one value, or one
/// for each column of input `b`), as it broadcasts to a product of `rank` dims.
absl::StatusOr<Decomposition::Value> ProductScale(Decomposition& d, Decomposition::Value a_scale,
                                                  int b, int b_scale, int rank);
/// Their product without zero points and what it stands for, in f32, plus the input `bias`, which
/// may be absent; `a_scale` is one value.
absl::StatusOr<Decomposition::Value> ProductToFloat(Decomposition& d,
                                                    const QuantisedOperands& operands,
                                                    Decomposition::Value a_scale, int b_scale,
                                                    int bias);

/// InvalidArgument unless input `i` is u8 or i8.
absl::Status CheckQuantised(const OpCall& call, int i);

}  // namespace fusion
