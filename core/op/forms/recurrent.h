#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Recurrent ops (RNN, GRU, LSTM) as the steps of their sequence: of a short one all of them, one
/// behind the other; of a long one a Repeat of one step. The products of all inputs with the input
/// weights are one MatMul before the first step.

/// Longest sequence that is written out, but for Decomposition::Options::short_repeats and for
/// quantised weights. A step that is written out may fuse with its neighbours.
inline constexpr int64_t kMostStepsWrittenOut = 16;

/// Hidden state and, for an LSTM, cell state: [batch, hidden]. kZero: all zeros, not written down.
struct RecurrentState {
  static constexpr Decomposition::Value kZero = -1;
  Decomposition::Value hidden = kZero;
  Decomposition::Value cell = kZero;
};

/// A weight [k, columns]. Quantised, if it has a scale: 8-bit integers, less `zero`, times `scale`,
/// which are one for all or one for each column.
struct RecurrentWeight {
  static constexpr Decomposition::Value kAbsent = -1;
  Decomposition::Value value = 0;
  Decomposition::Value zero = kAbsent;
  Decomposition::Value scale = kAbsent;
};
/// x times a weight; where that is quantised, x is too, as DynamicQuantizeLinear does.
absl::StatusOr<Decomposition::Value> Weighted(Decomposition& d, Decomposition::Value x,
                                              const RecurrentWeight& weight);

/// One step's operands. A gate is a part of `hidden_size` columns, in ONNX's order.
struct RecurrentStep {
  static constexpr Decomposition::Value kAbsent = -1;
  /// x W^T, with the input bias and, if merged, the recurrent bias: [batch, gates * hidden_size].
  Decomposition::Value projected = 0;
  RecurrentState before;
  /// R^T: [hidden_size, gates * hidden_size].
  RecurrentWeight recurrent_weight;
  /// Rb: [gates * hidden_size]; kAbsent: none, or part of `projected`.
  Decomposition::Value recurrent_bias = kAbsent;
  /// [3 * hidden_size]; kAbsent: none.
  Decomposition::Value peephole = kAbsent;
  int64_t hidden_size = 0;
  /// Gates' inputs are cut to [-clip, clip]; 0: not. The cell state is not cut before its
  /// activation h, although ONNX speaks of the input of all activations: onnxruntime does not.
  double clip = 0;
  /// The activations f, g, h of this direction, clip not included.
  using Activation =
      std::function<absl::StatusOr<Decomposition::Value>(Decomposition&, Decomposition::Value)>;
  std::vector<Activation> activation;
};

/// What an op adds to the common form.
struct RecurrentCell {
  int gates = 1;
  bool has_cell_state = false;
  /// The recurrent bias is added to the projected inputs once; else it is left to `step`.
  bool merge_recurrent_bias = true;
  /// W and R are quantised and stand for [directions, input or hidden, gates * hidden]; behind P
  /// follow scale and zero point of each, [directions] or [directions, gates * hidden].
  bool quantised_weights = false;
  std::vector<std::string> default_activations;
  std::function<absl::StatusOr<RecurrentState>(Decomposition&, const RecurrentStep&)> step;
};

/// Inputs X, W, R, B, initial_h[, initial_c, P] and sequence_lens, which is an attribute if it is
/// known; outputs Y, Y_h[, Y_c]. Of static shapes. Behind the end of a sequence its state stays
/// what it is and Y is 0; backwards a sequence begins at its own end.
absl::StatusOr<Decomposition::Value> DecomposeRecurrence(Decomposition& d,
                                                         const RecurrentCell& cell);
/// OpDef::symbolic_types of an op of this cell, whose `step` may be missing.
absl::StatusOr<std::vector<TensorType>> RecurrenceTypes(const OpCall& call,
                                                        const RecurrentCell& cell);

/// The attributes the three ops share.
std::vector<ParamSpec> RecurrentParams();

/// Columns of gates [first, first + count) of `value` (its last dim).
absl::StatusOr<Decomposition::Value> GateColumns(Decomposition& d, Decomposition::Value value,
                                                 int64_t hidden_size, int64_t first,
                                                 int64_t count = 1);
/// activation(value, cut to the step's clip).
absl::StatusOr<Decomposition::Value> Activate(Decomposition& d, const RecurrentStep& step,
                                              size_t activation, Decomposition::Value value);

}  // namespace fusion
