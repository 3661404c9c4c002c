#pragma once

#include <string_view>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// What the fused ops of ONNX Runtime share: the activation that one ends with, its name in the
/// attribute "activation", absent or empty for none.

/// Its numbers come from attributes of the call: `prefix` + "alpha", "beta" or "gamma"
/// (FusedGemm).
absl::StatusOr<Decomposition::Value> ActivatedByName(Decomposition& d, Decomposition::Value y,
                                                     std::string_view prefix);
/// Its numbers come from the list in the attribute `list`, in ONNX's order of the activation's
/// attributes (FusedConv).
absl::StatusOr<Decomposition::Value> ActivatedByList(Decomposition& d, Decomposition::Value y,
                                                     std::string_view list);

/// The attributes of FusedConv and NhwcFusedConv.
std::vector<ParamSpec> FusedConvParams();
/// activation(Conv(inputs 0 to 2) + input 3), inputs 2 and 3 at choice; `channels_last`: inputs 0
/// and 3 and the result have their channels last.
absl::StatusOr<Decomposition::Value> FusedConvolution(Decomposition& d, bool channels_last);

}  // namespace fusion
