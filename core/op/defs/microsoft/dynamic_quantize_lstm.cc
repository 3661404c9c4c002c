#include "core/op/forms/lstm_cell.h"

namespace fusion {

namespace {

RecurrentCell QuantisedLstmCell(const OpCall& call) {
  RecurrentCell cell = LstmCell(call.attrs());
  cell.quantised_weights = true;
  return cell;
}

}  // namespace

/// LSTM of quantised weights: W and R are [directions, input or hidden, 4 * hidden] and have scales
/// and zero points, each [directions] or [directions, 4 * hidden], inputs 8 to 11 of ONNX Runtime's
/// operator; what they are multiplied by is quantised as DynamicQuantizeLinear does, x as far as
/// the longest sequence, the hidden state in each step
OpDef DefineMicrosoftDynamicQuantizeLstm() {
  return {.name = "com.microsoft.DynamicQuantizeLSTM",
          .min_inputs = 3,
          .max_inputs = 12,
          .params = LstmParams(),
          .max_outputs = 3,
          .decompose =
              [](Decomposition& d) { return DecomposeRecurrence(d, QuantisedLstmCell(d.call())); },
          .symbolic_types =
              [](const OpCall& call) { return RecurrenceTypes(call, QuantisedLstmCell(call)); }};
}

}  // namespace fusion
