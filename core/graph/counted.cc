#include "core/graph/counted.h"

#include <algorithm>

namespace fusion {
namespace {

using Counts = std::vector<std::optional<CountedDim>>;

absl::Status NeedsExtent(const OpCall& call, size_t input, int dim) {
  const TensorType& type = call.in(static_cast<int>(input));
  return Unimplemented("a run decides how many elements of input ", input, " (at most ",
                       type.ToString(), ") there are along dim ", dim,
                       "; only ops that treat each of them alone can follow");
}

// The dim of the output that runs over the same elements as the counted dim of an input; -1: none.
int FollowingDim(const LoopBody& body, const IndexExpr& at) {
  if (!at.IsPlainAxis()) return -1;
  const int axis = at.terms()[0].axis;
  int found = -1;
  for (int d = 0; d < static_cast<int>(body.write.size()); ++d) {
    const IndexExpr& to = body.write[static_cast<size_t>(d)];
    if (to.CoefficientOf(axis) == 0) continue;
    if (!to.IsPlainAxis() || found >= 0) return -1;
    found = d;
  }
  return found;
}

absl::StatusOr<std::optional<CountedDim>> InheritThrough(const OpCall& call, const LoopBody& body,
                                                         const Counts& inputs) {
  std::optional<CountedDim> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const auto dim = static_cast<size_t>(inputs[i]->dim);
    const int to = FollowingDim(body, body.reads[i].index[dim]);
    if (to < 0) return NeedsExtent(call, i, inputs[i]->dim);
    const CountedDim follows{to, inputs[i]->count};
    if (out && *out != follows) {
      return Unimplemented("a run decides two extents of the output, or one of them twice");
    }
    out = follows;
  }
  return out;
}

absl::StatusOr<Counts> InheritInSteps(const OpCall& call, const Counts& inputs) {
  Decomposition steps(call);
  ASSIGN_OR_RETURN(Decomposition::Value first, call.def().decompose(steps));
  Counts counts = inputs;
  counts.resize(static_cast<size_t>(call.inputs()));
  for (const Decomposition::Step& step : steps.steps()) {
    Counts operands;
    std::vector<std::optional<TensorType>> types;
    for (Decomposition::Value v : step.inputs) {
      operands.push_back(counts[static_cast<size_t>(v)]);
      types.emplace_back(steps.type(v));
    }
    std::optional<CountedDim> result;
    if (step.def != nullptr) {
      OpCall inner(*step.def, std::move(types), step.attrs);
      ASSIGN_OR_RETURN(Counts outputs, InheritCounts(inner, operands));
      result = outputs[0];
    }
    counts.push_back(result);
  }
  Counts outputs = {counts[static_cast<size_t>(first)]};
  for (Decomposition::Value more : steps.more_outputs()) {
    outputs.push_back(counts[static_cast<size_t>(more)]);
  }
  return outputs;
}

}  // namespace

absl::StatusOr<Counts> InheritCounts(const OpCall& call, const Counts& inputs) {
  auto counted = std::find_if(inputs.begin(), inputs.end(), [](const auto& c) { return !!c; });
  if (counted == inputs.end()) return Counts(static_cast<size_t>(call.outputs()));
  const OpDef& def = call.def();
  const auto first = static_cast<size_t>(counted - inputs.begin());
  if (def.counted || (!def.body && !def.decompose)) {
    return NeedsExtent(call, first, (*counted)->dim);
  }
  if (def.decompose) return InheritInSteps(call, inputs);
  Counts outputs;
  for (int i = 0; i < call.outputs(); ++i) {
    absl::StatusOr<LoopBody> body = def.body(call, i);
    if (!body.ok() && absl::IsUnimplemented(body.status()) && def.reinterpret) {
      return NeedsExtent(call, first, (*counted)->dim);
    }
    RETURN_IF_ERROR(body.status());
    ASSIGN_OR_RETURN(std::optional<CountedDim> out, InheritThrough(call, *body, inputs));
    outputs.push_back(out);
  }
  return outputs;
}

}  // namespace fusion
