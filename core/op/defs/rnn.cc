#include "core/op/forms/recurrent.h"

namespace fusion {
namespace {

RecurrentCell RnnCell() { return {.gates = 1, .default_activations = {"Tanh"}}; }

}  // namespace

/// h = f(x W + h' R + biases), along a sequence
OpDef DefineRnn() {
  return {.name = "RNN",
          .min_inputs = 3,
          .max_inputs = 6,
          .params = RecurrentParams(),
          .min_opset = 7,
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RecurrentCell cell = RnnCell();
            cell.step = [](Decomposition& steps,
                           const RecurrentStep& step) -> absl::StatusOr<RecurrentState> {
              Decomposition::Value sum = step.projected;
              if (step.before.hidden != RecurrentState::kZero) {
                ASSIGN_OR_RETURN(
                    auto product,
                    steps.Apply("MatMul", {step.before.hidden, step.recurrent_weight.value}));
                ASSIGN_OR_RETURN(sum, steps.Apply("Add", {sum, product}));
              }
              RecurrentState after;
              ASSIGN_OR_RETURN(after.hidden, Activate(steps, step, 0, sum));
              return after;
            };
            return DecomposeRecurrence(d, cell);
          },
          .symbolic_types = [](const OpCall& call) { return RecurrenceTypes(call, RnnCell()); }};
}

}  // namespace fusion
