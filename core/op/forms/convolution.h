#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// What the convolutions of ONNX share: x [n, channels, spatial..] in input 0, windows and groups
/// in the attributes.

/// The attributes: those of windows and "group".
std::vector<ParamSpec> ConvolutionParams();

/// The sums of products of `w`, which has the shape of input `w_input`, and each window of `x`,
/// which has the shape of input 0; what pads x is 0. InvalidArgument, naming the input or
/// attribute, if they do not fit.
absl::StatusOr<Decomposition::Value> Convolved(Decomposition& d, Decomposition::Value x,
                                               Decomposition::Value w, int w_input);

}  // namespace fusion
