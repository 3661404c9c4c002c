#pragma once

#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Common steps of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Input 0: a score per
/// class, [N, C, d1, ..]. Input 1: the index of the target class, i32 or i64 [N, d1, ..]. Input 2,
/// optional: a weight per class, [C].

/// The attributes "reduction" (none, mean, sum; absent: mean) and "ignore_index" (absent: no target
/// is ignored).
std::vector<ParamSpec> LossParams();

/// InvalidArgument unless the inputs have these shapes and types and "reduction" is known.
absl::Status CheckLossInputs(const OpCall& call);

/// The type in which losses are computed: f64 for an input 0 of f64, else f32.
DType LossTypeOf(const OpCall& call);

/// The targets, in the shape of input 1.
struct LossTargets {
  Decomposition::Value meant = 0;  // the target class, i64
  /// bool: the target is ignored. Negative: none is.
  Decomposition::Value ignored = -1;
};
absl::StatusOr<LossTargets> LossTargetsOf(Decomposition& d);

/// The target classes, with 0 for ignored targets, whose class need not exist.
absl::StatusOr<Decomposition::Value> NamedClasses(Decomposition& d, const LossTargets& targets);

/// The output of the op for `losses`, one loss of type LossTypeOf for each target. Multiplies each
/// by the weight of its class (0 if it is ignored), applies "reduction" and casts to the type of
/// input 0. The mean is the sum of losses divided by the sum of weights: NaN if all targets are
/// ignored.
absl::StatusOr<Decomposition::Value> ReducedLoss(Decomposition& d, Decomposition::Value losses,
                                                 const LossTargets& targets);

}  // namespace fusion
