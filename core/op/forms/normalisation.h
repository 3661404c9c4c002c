#pragma once

#include "core/op/forms.h"

namespace fusion {

/// What normalisations share, those of ONNX Runtime above all.

/// Input 0 divided by the root of the mean of its squares plus attribute "epsilon", over the axes
/// from "axis" on, in f32 at least, then times input 1, which decides the type. `inverse`, if asked
/// for: one over the root. InvalidArgument, naming the input, for what is no float or does not fit.
absl::StatusOr<Decomposition::Value> RmsNormalised(Decomposition& d,
                                                   Decomposition::Value* inverse = nullptr);

/// Inputs 0 and 1 and, if there, input `bias`, added. The residual may lack batch entries: [rows,
/// n] or [1, rows, n]. InvalidArgument, naming the input, for what does not fit.
absl::StatusOr<Decomposition::Value> SkipSum(Decomposition& d, int bias);

/// The attributes of the normalisation over the last dim.
AttrMap SkipNormAttrs(const OpCall& call);

/// The attributes of GroupNorm and SkipGroupNorm.
std::vector<ParamSpec> GroupNormParams();

/// x [batch, height, width, channels], standardised over each of the groups of channels that
/// attribute "groups" says, times input 1 plus input 2 (one value for each channel), through what
/// attribute "activation" says: 0 nothing, 1 y * sigmoid(y). Of x's type, computed in f32.
absl::StatusOr<Decomposition::Value> GroupNormalised(Decomposition& d, Decomposition::Value x);

}  // namespace fusion
