#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/op/op_def.h"

namespace fusion {

/// Expansion of recurrent ops (RNN, GRU, LSTM). A short sequence is unrolled; a long one becomes a
/// Repeat of one step. One MatMul before the first step multiplies all inputs by the input weights.

/// Longest sequence that is unrolled. Unrolled steps can fuse with each other. Nothing is unrolled
/// with Decomposition::Options::short_repeats. With quantised weights only a sequence of one step
/// is unrolled.
inline constexpr int64_t kMostStepsWrittenOut = 16;

/// Hidden state and, for an LSTM, cell state: [batch, hidden]. kZero: all zeros, without a value.
struct RecurrentState {
  static constexpr Decomposition::Value kZero = -1;
  Decomposition::Value hidden = kZero;
  Decomposition::Value cell = kZero;
};

/// A weight [k, columns]. If `scale` is set it is quantised: (value - zero) * scale with 8-bit
/// values; zero and scale hold one value or one for each column.
struct RecurrentWeight {
  static constexpr Decomposition::Value kAbsent = -1;
  Decomposition::Value value = 0;
  Decomposition::Value zero = kAbsent;
  Decomposition::Value scale = kAbsent;
};
/// MatMul(x, weight). If the weight is quantised, x is quantised first by DynamicQuantizeLinear.
absl::StatusOr<Decomposition::Value> Weighted(Decomposition& d, Decomposition::Value x,
                                              const RecurrentWeight& weight);

/// Operands of one step. Each gate has `hidden_size` columns; gates are in ONNX's order.
struct RecurrentStep {
  static constexpr Decomposition::Value kAbsent = -1;
  /// x W^T plus the input bias and, with merge_recurrent_bias, the recurrent bias: [batch, gates *
  /// hidden_size].
  Decomposition::Value projected = 0;
  RecurrentState before;  // the previous state
  /// R^T: [hidden_size, gates * hidden_size].
  RecurrentWeight recurrent_weight;
  /// Rb: [gates * hidden_size]; kAbsent: none, or part of `projected`.
  Decomposition::Value recurrent_bias = kAbsent;
  /// [3 * hidden_size]; kAbsent: none.
  Decomposition::Value peephole = kAbsent;
  int64_t hidden_size = 0;
  /// Inputs of the gates are clipped to [-clip, clip]; 0: no clipping. The cell state is not
  /// clipped before its activation h. ONNX clips the inputs of all activations; onnxruntime does
  /// not.
  double clip = 0;
  /// The activations f, g, h of this direction, without clipping.
  using Activation =
      std::function<absl::StatusOr<Decomposition::Value>(Decomposition&, Decomposition::Value)>;
  std::vector<Activation> activation;
};

/// The cell of a recurrent op: everything that differs between RNN, GRU and LSTM.
struct RecurrentCell {
  int gates = 1;
  bool has_cell_state = false;
  /// True: the recurrent bias is part of RecurrentStep::projected. False: `step` adds it.
  bool merge_recurrent_bias = true;
  /// W and R are quantised, [directions, input or hidden, gates * hidden]. Their scales and zero
  /// points, [directions] or [directions, gates * hidden], are the inputs after P.
  bool quantised_weights = false;
  std::vector<std::string> default_activations;
  /// Appends one step; returns the next state.
  std::function<absl::StatusOr<RecurrentState>(Decomposition&, const RecurrentStep&)> step;
};

/// OpDef::decompose of an op with this cell. Inputs X, W, R, B, initial_h[, initial_c, P];
/// sequence_lens is an attribute if it is constant, else the last input. Outputs Y, Y_h[, Y_c].
/// After the end of a sequence its state does not change and Y is 0. A reverse pass starts at the
/// end of each sequence. Unimplemented for symbolic dims; InvalidArgument if inputs or attributes
/// do not fit.
absl::StatusOr<Decomposition::Value> DecomposeRecurrence(Decomposition& d,
                                                         const RecurrentCell& cell);
/// OpDef::symbolic_types of an op with this cell. `cell.step` may be empty.
absl::StatusOr<std::vector<TensorType>> RecurrenceTypes(const OpCall& call,
                                                        const RecurrentCell& cell);

/// The attributes that the three ops have in common.
std::vector<ParamSpec> RecurrentParams();

/// The columns (last dim) of `value` that belong to the gates [first, first + count).
absl::StatusOr<Decomposition::Value> GateColumns(Decomposition& d, Decomposition::Value value,
                                                 int64_t hidden_size, int64_t first,
                                                 int64_t count = 1);
/// step.activation[activation] of `value`, clipped to step.clip.
absl::StatusOr<Decomposition::Value> Activate(Decomposition& d, const RecurrentStep& step,
                                              size_t activation, Decomposition::Value value);

}  // namespace fusion
