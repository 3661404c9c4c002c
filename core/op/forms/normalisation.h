#pragma once

#include "core/op/forms.h"

namespace fusion {

/// Common steps of normalisations, mostly of ONNX Runtime's.

/// RMS normalisation: input 0 / sqrt(mean(input 0 ^ 2) + epsilon) * input 1. The mean is over the
/// axes from attribute "axis" (-1) on; "epsilon" is an attribute (1e-5). Computed in
/// StatisticsType; the result has the type of input 1. `*inverse`, if given, is set to 1 /
/// sqrt(..). InvalidArgument, naming the input, unless both are floats and input 1 broadcasts to
/// input 0.
absl::StatusOr<Decomposition::Value> RmsNormalised(Decomposition& d,
                                                   Decomposition::Value* inverse = nullptr);

/// Input 0 + input 1 (the residual) + input `bias`, if present. The residual broadcasts to input 0:
/// it may be [rows, n] or [1, rows, n]. InvalidArgument, naming the input, if they do not fit, or
/// if an input from 2 on is not one value per coordinate along the last dim.
absl::StatusOr<Decomposition::Value> SkipSum(Decomposition& d, int bias);

/// Attributes of the normalisation step over the last dim: "axis" -1 and "epsilon" of the call
/// (absent: 1e-12).
AttrMap SkipNormAttrs(const OpCall& call);

/// The attributes of GroupNorm and SkipGroupNorm.
std::vector<ParamSpec> GroupNormParams();

/// Group normalisation of x [batch, height, width, channels]: standardises each of the "groups"
/// groups of channels (an attribute), multiplies by input 1 and adds input 2 (one value per
/// channel). Attribute "activation": 0 none, 1 y * sigmoid(y). Computed in f32; the result has x's
/// type. InvalidArgument, naming the input or attribute, if they do not fit.
absl::StatusOr<Decomposition::Value> GroupNormalised(Decomposition& d, Decomposition::Value x);

}  // namespace fusion
