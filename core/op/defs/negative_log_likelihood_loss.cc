#include "core/op/forms.h"
#include "core/op/forms/losses.h"

namespace fusion {

/// loss[n, i..] = -x[n, t, i..] * weight[t] with t = target[n, i..], 0 where t is ignore_index; its
/// sum, or the sum divided by that of the weights, over all elements
OpDef DefineNegativeLogLikelihoodLoss() {
  return {.name = "NegativeLogLikelihoodLoss",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = LossParams(),
          .min_opset = 12,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RETURN_IF_ERROR(CheckLossInputs(d.call()));
            const AttrMap class_dim = {{"axes", Dims{1}}};
            ASSIGN_OR_RETURN(LossTargets targets, LossTargetsOf(d));
            ASSIGN_OR_RETURN(auto classes, NamedClasses(d, targets));
            ASSIGN_OR_RETURN(classes, d.Apply("Unsqueeze", {classes}, class_dim));
            ASSIGN_OR_RETURN(auto picked,
                             d.Apply("GatherElements", {d.in(0), classes}, {{"axis", int64_t{1}}}));
            ASSIGN_OR_RETURN(picked, d.Apply("Squeeze", {picked}, class_dim));
            ASSIGN_OR_RETURN(picked, CastTo(d, picked, LossTypeOf(d.call())));
            ASSIGN_OR_RETURN(auto losses, d.Apply("Neg", {picked}));
            return ReducedLoss(d, losses, targets);
          }};
}

}  // namespace fusion
