#pragma once

#include <string_view>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// The activation that ends a fused op of ONNX Runtime. Attribute "activation" names it; absent or
/// empty: none. Supported: Clip, Elu, HardSigmoid, LeakyRelu, Relu, Selu, Sigmoid, Softplus,
/// Softsign, Tanh, ThresholdedRelu; others are Unimplemented.

/// activation(y). Its parameters are the attributes `prefix` + "alpha", "beta" and "gamma", each
/// optional (FusedGemm).
absl::StatusOr<Decomposition::Value> ActivatedByName(Decomposition& d, Decomposition::Value y,
                                                     std::string_view prefix);
/// activation(y). Its parameters are the list in attribute `list`, in ONNX's order of the
/// activation's attributes (FusedConv). InvalidArgument for a list of another length.
absl::StatusOr<Decomposition::Value> ActivatedByList(Decomposition& d, Decomposition::Value y,
                                                     std::string_view list);

/// The attributes of FusedConv and NhwcFusedConv.
std::vector<ParamSpec> FusedConvParams();
/// activation(Conv(inputs 0 to 2) + input 3); inputs 2 and 3 may be absent. `channels_last`:
/// channels are the last dim of inputs 0 and 3 and of the result.
absl::StatusOr<Decomposition::Value> FusedConvolution(Decomposition& d, bool channels_last);

}  // namespace fusion
