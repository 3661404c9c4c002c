#include "core/op/recurrent.h"

namespace fusion {

namespace {

using LstmValue = Decomposition::Value;

// Gates in ONNX's order: input, output, forget, cell.
absl::StatusOr<RecurrentState> LstmStep(Decomposition& d, const RecurrentStep& step,
                                        bool input_forget) {
  enum { kInputGate, kOutputGate, kForgetGate, kCellGate };
  const RecurrentState& before = step.before;
  LstmValue sum = step.projected;
  if (before.hidden != RecurrentState::kZero) {
    ASSIGN_OR_RETURN(LstmValue product, d.Apply("MatMul", {before.hidden, step.recurrent_weight}));
    ASSIGN_OR_RETURN(sum, d.Apply("Add", {sum, product}));
  }
  // A gate's columns plus peephole * cell state, through activation f.
  auto gate = [&](int which, int peephole, LstmValue cell) -> absl::StatusOr<LstmValue> {
    ASSIGN_OR_RETURN(LstmValue x, GateColumns(d, sum, step.hidden_size, which));
    if (step.peephole != RecurrentStep::kAbsent && cell != RecurrentState::kZero) {
      ASSIGN_OR_RETURN(LstmValue p, GateColumns(d, step.peephole, step.hidden_size, peephole));
      ASSIGN_OR_RETURN(LstmValue seen, d.Apply("Mul", {cell, p}));
      ASSIGN_OR_RETURN(x, d.Apply("Add", {x, seen}));
    }
    return Activate(d, step, 0, x);
  };
  RecurrentState after;
  ASSIGN_OR_RETURN(LstmValue in, gate(kInputGate, 0, before.cell));
  ASSIGN_OR_RETURN(LstmValue candidate, GateColumns(d, sum, step.hidden_size, kCellGate));
  ASSIGN_OR_RETURN(candidate, Activate(d, step, 1, candidate));
  ASSIGN_OR_RETURN(after.cell, d.Apply("Mul", {in, candidate}));
  if (before.cell != RecurrentState::kZero) {
    LstmValue forget = 0;
    if (input_forget) {
      ASSIGN_OR_RETURN(forget, d.Apply("Sub", {d.Scalar(d.type(in).dtype, 1), in}));
    } else {
      ASSIGN_OR_RETURN(forget, gate(kForgetGate, 2, before.cell));
    }
    ASSIGN_OR_RETURN(LstmValue kept, d.Apply("Mul", {forget, before.cell}));
    ASSIGN_OR_RETURN(after.cell, d.Apply("Add", {kept, after.cell}));
  }
  ASSIGN_OR_RETURN(LstmValue out, gate(kOutputGate, 1, after.cell));
  // Not clipped, see RecurrentStep::clip.
  ASSIGN_OR_RETURN(LstmValue shown, step.activation[2](d, after.cell));
  ASSIGN_OR_RETURN(after.hidden, d.Apply("Mul", {out, shown}));
  return after;
}

RecurrentCell LstmCell() {
  return {.gates = 4, .has_cell_state = true, .default_activations = {"Sigmoid", "Tanh", "Tanh"}};
}

}  // namespace

/// c = f . c' + i . g(x Wc + h' Rc), h = o . h(c) with gates i, o, f, along a sequence
OpDef DefineLstm() {
  std::vector<ParamSpec> params = RecurrentParams();
  params.push_back({.name = "input_forget", .kind = ParamSpec::kInt});
  return {.name = "LSTM",
          .min_inputs = 3,
          .max_inputs = 8,
          .params = std::move(params),
          .min_opset = 7,
          .max_outputs = 3,
          .decompose = [](Decomposition& d) -> absl::StatusOr<LstmValue> {
            bool input_forget = d.call().attrs().Int("input_forget", 0) != 0;
            RecurrentCell cell = LstmCell();
            cell.step = [input_forget](Decomposition& steps, const RecurrentStep& step) {
              return LstmStep(steps, step, input_forget);
            };
            return DecomposeRecurrence(d, cell);
          },
          .symbolic_types = [](const OpCall& call) { return RecurrenceTypes(call, LstmCell()); }};
}

}  // namespace fusion
