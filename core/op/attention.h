#pragma once

#include <vector>

#include "core/op/forms.h"

namespace fusion {

/// What the attention ops of ONNX Runtime share: softmax(q k^T * scale + addends) v for each head,
/// with q [batch, heads, rows, n], k [batch, heads, keys, n] and v [batch, heads, keys, m].

struct AttentionForm {
  Decomposition::Value q = 0;
  Decomposition::Value k = 0;
  Decomposition::Value v = 0;
  double scale = 0;                                // 0: 1 / sqrt n
  double softcap = 0;                              // c > 0: scores are c * tanh(scores / c)
  std::vector<Decomposition::Value> addends = {};  // broadcast to [batch, heads, rows, keys]
};
/// [batch, heads, rows, m].
absl::StatusOr<Decomposition::Value> Attend(Decomposition& d, const AttentionForm& form);

/// x [batch, rows, heads * n] as [batch, heads, rows, n], and back.
absl::StatusOr<Decomposition::Value> IntoHeads(Decomposition& d, Decomposition::Value x,
                                               int64_t heads);
absl::StatusOr<Decomposition::Value> OutOfHeads(Decomposition& d, Decomposition::Value x);

/// What hides keys from rows.
struct HiddenKeys {
  /// The input with a mask, i32: ends [batch]; ends, then begins [2 * batch]; ends, then what is
  /// beside the point here [3 * batch + 2]; or 1 for seen keys, [batch, keys] or [batch, rows,
  /// keys]. -1, or an absent input: none.
  int mask = -1;
  /// Whether no row sees a later one, the first row being at `past`, i64, which broadcasts to
  /// [batch, 1, rows, keys]; of those before it the last `window` (-1: all).
  bool causal = false;
  Decomposition::Value past = 0;
  int64_t window = -1;
};
/// Its addends to scores [batch, heads, rows, keys] of type `type`. What causality hides is out of
/// the question; what a mask hides is pushed down by attribute "mask_filter_value" (-10000): a row
/// that sees nothing sees all, as ONNX Runtime has it.
absl::StatusOr<std::vector<Decomposition::Value>> AddendsOf(Decomposition& d,
                                                            const HiddenKeys& hidden,
                                                            const Dims& scores, DType type);

/// Checks that input `input` is an addend: [batch or 1, heads or 1, rows, keys] of type `type`.
absl::Status CheckAttentionBias(const OpCall& call, int input, DType type, const Dims& scores);

/// The inputs of an op with a projection of its own (Attention, QAttention).
struct ProjectedAttention {
  int mask = 0;
  int past = 0;
  int bias = -1;  // -1: the op has none
};
/// The attributes of such an op.
std::vector<ParamSpec> ProjectedAttentionParams();
/// Its outputs, from queries, keys and values side by side, [batch, rows, widths of all three]:
/// output 1, if named, is [keys, values] of past and present.
absl::StatusOr<Decomposition::Value> AttendProjected(Decomposition& d, Decomposition::Value all,
                                                     const ProjectedAttention& inputs);

/// x [batch, heads, rows, n] with the pairs of its first 2 * m elements turned by the angles whose
/// cosines and sines are [rows, m] or [batch, 1, rows, m] (of an x with heads and rows in the other
/// order likewise): element i with m + i or, `interleaved`,
/// 2 i with 2 i + 1.
absl::StatusOr<Decomposition::Value> Rotated(Decomposition& d, Decomposition::Value x,
                                             Decomposition::Value cosines,
                                             Decomposition::Value sines, bool interleaved);
/// Of the positions in `table` (an input, [positions, m]), [rows] or [batch, rows] of them.
absl::StatusOr<Decomposition::Value> AnglesAt(Decomposition& d, int table,
                                              Decomposition::Value positions);

}  // namespace fusion
