#include "core/graph/counted.h"

#include <algorithm>

#include "core/op/indexed/opaque.h"

namespace fusion {
namespace {

using Counts = std::vector<std::optional<CountedDim>>;

// What is known of an operand: a counted dim; or that it follows from types and attributes alone,
// so that it has an element wherever one is asked for; or neither: a tensor as long as its type.
struct Operand {
  std::optional<CountedDim> counted;
  bool made_to_fit = false;
};

absl::Status NeedsExtent(const OpCall& call, size_t input, int dim) {
  const TensorType& type = call.in(static_cast<int>(input));
  return Unimplemented("a run decides how many elements of input ", input, " (at most ",
                       type.ToString(), ") there are along dim ", dim,
                       "; only ops that treat each of them alone can follow");
}

// The axis that runs over the elements of the input along `dim`, over all of them; -1: none.
int AxisOver(const OpCall& call, const LoopBody& body, size_t input, int dim) {
  const Read& read = body.reads[input];
  const IndexExpr& at = read.index[static_cast<size_t>(dim)];
  if (!at.IsPlainAxis()) return -1;
  const int axis = at.terms()[0].axis;
  const Dim& extent = body.axes[static_cast<size_t>(axis)].extent;
  if (extent != call.shape(static_cast<int>(input)).dim(dim)) return -1;
  for (const Guard& guard : read.guards) {
    if (guard.axis == axis) return -1;
  }
  return axis;
}

// The dim of the output that `axis` alone runs along; -1: none.
int DimOf(const LoopBody& body, int axis) {
  int found = -1;
  for (int d = 0; d < static_cast<int>(body.write.size()); ++d) {
    const IndexExpr& to = body.write[static_cast<size_t>(d)];
    if (to.CoefficientOf(axis) == 0) continue;
    if (!to.IsPlainAxis() || found >= 0) return -1;
    found = d;
  }
  return found;
}

bool Uses(const Read& read, int axis) {
  return std::any_of(read.index.begin(), read.index.end(),
                     [axis](const IndexExpr& e) { return e.CoefficientOf(axis) != 0; });
}

absl::StatusOr<std::optional<CountedDim>> InheritThrough(const OpCall& call, const LoopBody& body,
                                                         const std::vector<Operand>& operands) {
  std::optional<CountedDim> out;
  int along = -1;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::optional<CountedDim>& counted = operands[i].counted;
    if (!counted) continue;
    along = AxisOver(call, body, i, counted->dim);
    const int to = along < 0 ? -1 : DimOf(body, along);
    if (to < 0) return NeedsExtent(call, i, counted->dim);
    const CountedDim follows{to, counted->count};
    if (out && *out != follows) {
      return Unimplemented("a run decides two extents of the output, or one of them twice");
    }
    out = follows;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (operand.counted || operand.made_to_fit || !Uses(body.reads[i], along)) continue;
    return Unimplemented("input ", i, " is ", call.in(static_cast<int>(i)).ToString(),
                         " beside one of which a run decides the extent (at most ",
                         body.axes[static_cast<size_t>(along)].extent.ToString(), ")");
  }
  return out;
}

absl::StatusOr<Counts> Inherit(const OpCall& call, const std::vector<Operand>& operands);

// Rows along another dim are worked on one by one.
absl::StatusOr<Counts> InheritThroughRows(const OpCall& call, const Operand& x) {
  const std::string& name = call.def().name;
  const bool rows = name == RunningFold::kName || name == RowOrder::kName;
  const bool along = x.counted->dim == call.attrs().Int("axis", 0);
  if (!rows || along) return NeedsExtent(call, 0, x.counted->dim);
  return Counts{x.counted};
}

absl::StatusOr<Counts> InheritInSteps(const OpCall& call, const std::vector<Operand>& operands) {
  Decomposition steps(call);
  ASSIGN_OR_RETURN(Decomposition::Value first, call.def().decompose(steps));
  std::vector<Operand> values = operands;
  values.resize(static_cast<size_t>(call.inputs()));
  for (const Decomposition::Step& step : steps.steps()) {
    std::vector<Operand> read;
    std::vector<std::optional<TensorType>> types;
    bool fits = true;
    for (Decomposition::Value v : step.inputs) {
      read.push_back(values[static_cast<size_t>(v)]);
      types.emplace_back(steps.type(v));
      fits = fits && read.back().made_to_fit;
    }
    Counts outputs(static_cast<size_t>(step.outputs));
    if (step.def != nullptr && !fits) {
      OpCall inner(*step.def, std::move(types), step.attrs, step.outputs);
      ASSIGN_OR_RETURN(outputs, Inherit(inner, read));
    }
    for (const std::optional<CountedDim>& counted : outputs) {
      values.push_back({.counted = counted, .made_to_fit = fits});
    }
  }
  Counts outputs = {values[static_cast<size_t>(first)].counted};
  for (Decomposition::Value more : steps.more_outputs()) {
    outputs.push_back(values[static_cast<size_t>(more)].counted);
  }
  return outputs;
}

absl::StatusOr<Counts> Inherit(const OpCall& call, const std::vector<Operand>& operands) {
  auto counted = std::find_if(operands.begin(), operands.end(),
                              [](const Operand& o) { return o.counted.has_value(); });
  if (counted == operands.end()) return Counts(static_cast<size_t>(call.outputs()));
  const OpDef& def = call.def();
  const auto first = static_cast<size_t>(counted - operands.begin());
  if (def.opaque && first == 0) return InheritThroughRows(call, *counted);
  if (def.counted || (!def.body && !def.decompose)) {
    return NeedsExtent(call, first, counted->counted->dim);
  }
  if (def.decompose) return InheritInSteps(call, operands);
  Counts outputs;
  for (int i = 0; i < call.outputs(); ++i) {
    absl::StatusOr<LoopBody> body = def.body(call, i);
    if (!body.ok() && absl::IsUnimplemented(body.status()) && def.reinterpret) {
      return NeedsExtent(call, first, counted->counted->dim);
    }
    RETURN_IF_ERROR(body.status());
    ASSIGN_OR_RETURN(std::optional<CountedDim> out, InheritThrough(call, *body, operands));
    outputs.push_back(out);
  }
  return outputs;
}

}  // namespace

absl::StatusOr<Counts> InheritCounts(const OpCall& call, const Counts& inputs) {
  std::vector<Operand> operands;
  for (const std::optional<CountedDim>& counted : inputs) operands.push_back({.counted = counted});
  return Inherit(call, operands);
}

}  // namespace fusion
