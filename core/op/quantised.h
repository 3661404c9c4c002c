#pragma once

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
/// Their convolution in i32 (core/op/convolution.h), x being input 0; a zero point for all or, of
/// w, for each output channel.
absl::StatusOr<Decomposition::Value> QuantisedConvolution(Decomposition& d,
                                                          const QuantisedOperands& operands);
/// What `sums`, in i32, of products of operands stand for, quantised as the call's inputs `scale`
/// and `zero` say; `operand_scale`: the product of the scales of both operands, broadcast.
absl::StatusOr<Decomposition::Value> Requantised(Decomposition& d, Decomposition::Value sums,
                                                 Decomposition::Value operand_scale, int scale,
                                                 int zero);

/// InvalidArgument unless input `i` is u8 or i8.
absl::Status CheckQuantised(const OpCall& call, int i);

}  // namespace fusion
