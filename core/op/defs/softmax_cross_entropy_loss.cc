#include "core/op/forms.h"
#include "core/op/forms/losses.h"

namespace fusion {

/// loss[n, i..] = -log_prob[n, t, i..] * weight[t] with t = label[n, i..], 0 where t is
/// ignore_index; its sum, or the sum divided by that of the weights, over all elements. Output 1,
/// if named, is log_prob = (x - max x) - log sum e^(x - max x) along dim 1.
OpDef DefineSoftmaxCrossEntropyLoss() {
  return {.name = "SoftmaxCrossEntropyLoss",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = LossParams(),
          .min_opset = 12,
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckLossInputs(call));
            const Dim& classes = call.shape(0).dim(1);
            if (!classes.is_static()) {
              return Unimplemented("classes along the symbolic dim ", classes.ToString());
            }
            const AttrMap class_dim = {{"axes", Dims{1}}};
            const DType type = LossTypeOf(call);
            ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), type));
            ASSIGN_OR_RETURN(auto max, d.Apply("ReduceMax", {x}, class_dim));
            ASSIGN_OR_RETURN(auto shifted, d.Apply("Sub", {x, max}));
            ASSIGN_OR_RETURN(auto e, d.Apply("Exp", {shifted}));
            ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {e}, class_dim));
            ASSIGN_OR_RETURN(auto log, d.Apply("Log", {sum}));
            if (call.outputs() > 1) {
              ASSIGN_OR_RETURN(auto log_prob, d.Apply("Sub", {shifted, log}));
              ASSIGN_OR_RETURN(log_prob, CastTo(d, log_prob, call.dtype(0)));
              d.SetOutput(1, log_prob);
            }
            // The class is picked by a reduction like the others: an indexed read would need all
            // of log_prob in memory. It is picked from x, so that it needs no other reduction.
            ASSIGN_OR_RETURN(LossTargets targets, LossTargetsOf(d));
            ASSIGN_OR_RETURN(auto hit, d.Apply("MatchIndex", {targets.meant},
                                               {{"axis", int64_t{1}}, {"depth", classes.value()}}));
            ASSIGN_OR_RETURN(auto hits, d.Apply("Where", {hit, x, d.Scalar(type, 0)}));
            ASSIGN_OR_RETURN(auto picked, d.Apply("ReduceSum", {hits}, class_dim));
            ASSIGN_OR_RETURN(picked, d.Apply("Sub", {picked, max}));
            ASSIGN_OR_RETURN(auto losses, d.Apply("Sub", {log, picked}));
            ASSIGN_OR_RETURN(losses, d.Apply("Squeeze", {losses}, class_dim));
            return ReducedLoss(d, losses, targets);
          }};
}

}  // namespace fusion
