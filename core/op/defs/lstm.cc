#include "core/op/forms/lstm_cell.h"

namespace fusion {

/// c = f . c' + i . g(x Wc + h' Rc), h = o . h(c) with gates i, o, f, along a sequence
OpDef DefineLstm() {
  return {.name = "LSTM",
          .min_inputs = 3,
          .max_inputs = 8,
          .params = LstmParams(),
          .min_opset = 7,
          .max_outputs = 3,
          .decompose =
              [](Decomposition& d) { return DecomposeRecurrence(d, LstmCell(d.call().attrs())); },
          .symbolic_types =
              [](const OpCall& call) { return RecurrenceTypes(call, LstmCell(call.attrs())); }};
}

}  // namespace fusion
