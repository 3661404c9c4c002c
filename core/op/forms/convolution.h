#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Common steps of ONNX's convolutions. x is input 0, [n, channels, spatial..]; attributes describe
/// windows and groups.

/// The attributes of WindowParams and "group".
std::vector<ParamSpec> ConvolutionParams();

/// The convolution of `x`, which has the shape of input 0, by `w`, which has the shape of input
/// `w_input`; x is padded with 0. InvalidArgument, naming the input or attribute, if they do not
/// fit; Unimplemented for symbolic spatial dims or a symbolic dim of w.
absl::StatusOr<Decomposition::Value> Convolved(Decomposition& d, Decomposition::Value x,
                                               Decomposition::Value w, int w_input);

}  // namespace fusion
