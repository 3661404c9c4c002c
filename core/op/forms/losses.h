#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// What NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss share. Input 0 holds a number per
/// class, [N, C, d1, ..], input 1 the index of the class that is meant, [N, d1, ..], and input 2,
/// if present, a weight per class, [C].

/// "reduction" (none, mean, sum; absent: mean) and "ignore_index" (absent: nothing is ignored).
std::vector<ParamSpec> LossParams();

/// InvalidArgument unless the inputs have these shapes and types.
absl::Status CheckLossInputs(const OpCall& call);

/// Losses are computed in f32 at least, whatever the type of input 0.
DType LossTypeOf(const OpCall& call);

/// Which class is meant, i64, and where it is ignored.
struct LossTargets {
  Decomposition::Value meant = 0;
  /// bool; negative: nowhere.
  Decomposition::Value ignored = -1;
};
absl::StatusOr<LossTargets> LossTargetsOf(Decomposition& d);

/// The class that is meant; 0 where it is ignored, as it need not exist there.
absl::StatusOr<Decomposition::Value> NamedClasses(Decomposition& d, const LossTargets& targets);

/// What the node gives for `losses`, one of LossTypeOf for each target: each times the weight of
/// its class, which is 0 where the class is ignored; reduced; as the type of input 0. The mean is
/// the sum divided by that of the weights: NaN if all are ignored.
absl::StatusOr<Decomposition::Value> ReducedLoss(Decomposition& d, Decomposition::Value losses,
                                                 const LossTargets& targets);

}  // namespace fusion
