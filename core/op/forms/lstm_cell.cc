#include "core/op/forms/lstm_cell.h"

namespace fusion {

namespace {

using Value = Decomposition::Value;

// Gates in ONNX's order: input, output, forget, cell.
absl::StatusOr<RecurrentState> LstmStep(Decomposition& d, const RecurrentStep& step,
                                        bool input_forget) {
  enum { kInputGate, kOutputGate, kForgetGate, kCellGate };
  const RecurrentState& before = step.before;
  Value sum = step.projected;
  if (before.hidden != RecurrentState::kZero) {
    ASSIGN_OR_RETURN(Value product, Weighted(d, before.hidden, step.recurrent_weight));
    ASSIGN_OR_RETURN(sum, d.Apply("Add", {sum, product}));
  }
  // A gate's columns plus peephole * cell state, through activation f.
  auto gate = [&](int which, int peephole, Value cell) -> absl::StatusOr<Value> {
    ASSIGN_OR_RETURN(Value x, GateColumns(d, sum, step.hidden_size, which));
    if (step.peephole != RecurrentStep::kAbsent && cell != RecurrentState::kZero) {
      ASSIGN_OR_RETURN(Value p, GateColumns(d, step.peephole, step.hidden_size, peephole));
      ASSIGN_OR_RETURN(Value seen, d.Apply("Mul", {cell, p}));
      ASSIGN_OR_RETURN(x, d.Apply("Add", {x, seen}));
    }
    return Activate(d, step, 0, x);
  };
  RecurrentState after;
  ASSIGN_OR_RETURN(Value in, gate(kInputGate, 0, before.cell));
  ASSIGN_OR_RETURN(Value candidate, GateColumns(d, sum, step.hidden_size, kCellGate));
  ASSIGN_OR_RETURN(candidate, Activate(d, step, 1, candidate));
  ASSIGN_OR_RETURN(after.cell, d.Apply("Mul", {in, candidate}));
  if (before.cell != RecurrentState::kZero) {
    Value forget = 0;
    if (input_forget) {
      ASSIGN_OR_RETURN(forget, d.Apply("Sub", {d.Scalar(d.type(in).dtype, 1), in}));
    } else {
      ASSIGN_OR_RETURN(forget, gate(kForgetGate, 2, before.cell));
    }
    ASSIGN_OR_RETURN(Value kept, d.Apply("Mul", {forget, before.cell}));
    ASSIGN_OR_RETURN(after.cell, d.Apply("Add", {kept, after.cell}));
  }
  ASSIGN_OR_RETURN(Value out, gate(kOutputGate, 1, after.cell));
  // Not clipped, see RecurrentStep::clip.
  ASSIGN_OR_RETURN(Value shown, step.activation[2](d, after.cell));
  ASSIGN_OR_RETURN(after.hidden, d.Apply("Mul", {out, shown}));
  return after;
}

}  // namespace

RecurrentCell LstmCell(const AttrMap& attrs) {
  const bool input_forget = attrs.Int("input_forget", 0) != 0;
  return {.gates = 4,
          .has_cell_state = true,
          .default_activations = {"Sigmoid", "Tanh", "Tanh"},
          .step = [input_forget](Decomposition& d, const RecurrentStep& step) {
            return LstmStep(d, step, input_forget);
          }};
}

std::vector<ParamSpec> LstmParams() {
  std::vector<ParamSpec> params = RecurrentParams();
  params.push_back({.name = "input_forget", .kind = ParamSpec::kInt});
  return params;
}

}  // namespace fusion
