#include "core/op/forms/recurrent.h"

namespace fusion {

namespace {

using GruValue = Decomposition::Value;

// Gates in ONNX's order: update, reset, hidden. `linear_before_reset`: the reset gate scales the
// product with the recurrent weight, not the state.
absl::StatusOr<RecurrentState> GruStep(Decomposition& d, const RecurrentStep& step,
                                       bool linear_before_reset) {
  GruValue before = step.before.hidden;
  int64_t size = step.hidden_size;
  int64_t multiplied = linear_before_reset ? 3 : 2;  // gates that see h' R as it is
  GruValue recurrent = RecurrentStep::kAbsent;
  if (before != RecurrentState::kZero) {
    ASSIGN_OR_RETURN(GruValue weight,
                     GateColumns(d, step.recurrent_weight.value, size, 0, multiplied));
    ASSIGN_OR_RETURN(recurrent, d.Apply("MatMul", {before, weight}));
    if (step.recurrent_bias != RecurrentStep::kAbsent) {
      ASSIGN_OR_RETURN(recurrent, d.Apply("Add", {recurrent, step.recurrent_bias}));
    }
  } else {
    recurrent = step.recurrent_bias;
  }
  auto gate = [&](int which) -> absl::StatusOr<GruValue> {
    ASSIGN_OR_RETURN(GruValue x, GateColumns(d, step.projected, size, which));
    if (recurrent != RecurrentStep::kAbsent) {
      ASSIGN_OR_RETURN(GruValue r, GateColumns(d, recurrent, size, which));
      ASSIGN_OR_RETURN(x, d.Apply("Add", {x, r}));
    }
    return Activate(d, step, 0, x);
  };
  ASSIGN_OR_RETURN(GruValue update, gate(0));
  ASSIGN_OR_RETURN(GruValue candidate, GateColumns(d, step.projected, size, 2));
  GruValue seen = RecurrentStep::kAbsent;
  if (linear_before_reset && recurrent != RecurrentStep::kAbsent) {
    ASSIGN_OR_RETURN(GruValue reset, gate(1));
    ASSIGN_OR_RETURN(seen, GateColumns(d, recurrent, size, 2));
    ASSIGN_OR_RETURN(seen, d.Apply("Mul", {reset, seen}));
  } else if (!linear_before_reset && before != RecurrentState::kZero) {
    ASSIGN_OR_RETURN(GruValue reset, gate(1));
    ASSIGN_OR_RETURN(GruValue kept, d.Apply("Mul", {reset, before}));
    ASSIGN_OR_RETURN(GruValue weight, GateColumns(d, step.recurrent_weight.value, size, 2));
    ASSIGN_OR_RETURN(seen, d.Apply("MatMul", {kept, weight}));
  }
  if (seen != RecurrentStep::kAbsent) {
    ASSIGN_OR_RETURN(candidate, d.Apply("Add", {candidate, seen}));
  }
  ASSIGN_OR_RETURN(candidate, Activate(d, step, 1, candidate));
  RecurrentState after;
  ASSIGN_OR_RETURN(GruValue rest, d.Apply("Sub", {d.Scalar(d.type(update).dtype, 1), update}));
  ASSIGN_OR_RETURN(after.hidden, d.Apply("Mul", {rest, candidate}));
  if (before == RecurrentState::kZero) return after;
  ASSIGN_OR_RETURN(GruValue kept, d.Apply("Mul", {update, before}));
  ASSIGN_OR_RETURN(after.hidden, d.Apply("Add", {after.hidden, kept}));
  return after;
}

RecurrentCell GruCell() { return {.gates = 3, .default_activations = {"Sigmoid", "Tanh"}}; }

}  // namespace

/// h = (1 - z) . g(x Wh + (r . h') Rh) + z . h' with gates z and r, along a sequence
OpDef DefineGru() {
  std::vector<ParamSpec> params = RecurrentParams();
  params.push_back({.name = "linear_before_reset", .kind = ParamSpec::kInt});
  return {.name = "GRU",
          .min_inputs = 3,
          .max_inputs = 6,
          .params = std::move(params),
          .min_opset = 7,
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<GruValue> {
            bool linear = d.call().attrs().Int("linear_before_reset", 0) != 0;
            RecurrentCell cell = GruCell();
            cell.merge_recurrent_bias = !linear;
            cell.step = [linear](Decomposition& steps, const RecurrentStep& step) {
              return GruStep(steps, step, linear);
            };
            return DecomposeRecurrence(d, cell);
          },
          .symbolic_types = [](const OpCall& call) { return RecurrenceTypes(call, GruCell()); }};
}

}  // namespace fusion
