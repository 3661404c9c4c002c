#pragma once

#include <vector>

#include "core/op/forms.h"

namespace fusion {

/// What the attention ops share: softmax(scores + addends) v for each head, with q [batch, heads,
/// rows, n], k [batch, heads, keys, n] and v [batch, heads, keys, m], the scores being q k^T *
/// scale. Extents are static.

/// q k^T, [batch, heads, rows, keys].
absl::StatusOr<Decomposition::Value> HeadProducts(Decomposition& d, Decomposition::Value q,
                                                  Decomposition::Value k);
/// c * tanh(scores / c); the scores themselves unless c > 0.
absl::StatusOr<Decomposition::Value> Capped(Decomposition& d, Decomposition::Value scores,
                                            double c);

/// The attention of ONNX Runtime's ops.
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

/// x [batch, rows, heads * n] as [batch, heads, rows, n], and back. InvalidArgument for what is
/// not made of `heads` heads.
absl::StatusOr<Decomposition::Value> IntoHeads(Decomposition& d, Decomposition::Value x,
                                               int64_t heads);
absl::StatusOr<Decomposition::Value> OutOfHeads(Decomposition& d, Decomposition::Value x);

/// Keys or values, [batch, heads, keys, n], each head `times` times: for the heads of queries that
/// share it.
absl::StatusOr<Decomposition::Value> ForHeadsOfQueries(Decomposition& d, Decomposition::Value x,
                                                       int64_t times);

/// Keys that a row sees by their distance from its own position, and by their own.
struct KeyWindow {
  static constexpr Decomposition::Value kFromZero = -1;
  /// The key at whose place the first row is, i64, which broadcasts to [batch, 1, rows, keys].
  Decomposition::Value first = kFromZero;
  /// How many keys before its own place and behind it a row sees; -1: all.
  int64_t before = -1;
  int64_t behind = -1;
  /// The first key that no row sees, likewise.
  static constexpr Decomposition::Value kAll = -1;
  Decomposition::Value end = kAll;
  bool hides() const { return before >= 0 || behind >= 0 || end != kAll; }
};
/// Whether a row sees a key through a window that hides some, as it broadcasts to [batch, heads,
/// rows, keys].
absl::StatusOr<Decomposition::Value> SeenThrough(Decomposition& d, const KeyWindow& window,
                                                 int64_t rows, int64_t keys);
/// What is added to scores: 0 where `seen`, else `hidden`, of its type.
absl::StatusOr<Decomposition::Value> AddendOf(Decomposition& d, Decomposition::Value seen,
                                              Decomposition::Value hidden);

/// What hides keys from rows.
struct HiddenKeys {
  /// The input with a mask, i32: ends [batch]; ends, then begins [2 * batch]; ends, then what is
  /// beside the point here [3 * batch + 2]; or 1 for seen keys, [batch, keys] or [batch, rows,
  /// keys]. -1, or an absent input: none.
  int mask = -1;
  KeyWindow window = {};
};
/// Its addends to scores [batch, heads, rows, keys] of type `type`. What the window hides is out of
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

/// Checks that inputs `cosines` and `cosines` + 1 are tables [positions, turned / 2] of input 0's
/// type for heads of `head` elements, of which the first `turned` turn.
absl::Status CheckRotaryTables(const OpCall& call, int cosines, int64_t turned, int64_t head);
/// x [batch, heads, rows, n] with the pairs of its first 2 * m elements turned by the angles whose
/// cosines and sines are [rows, m] or [batch, 1, rows, m] (of an x with heads and rows in the other
/// order likewise): element i with m + i or, `interleaved`,
/// 2 i with 2 i + 1.
absl::StatusOr<Decomposition::Value> Rotated(Decomposition& d, Decomposition::Value x,
                                             Decomposition::Value cosines,
                                             Decomposition::Value sines, bool interleaved);
/// Those of the positions, [rows] or [batch, rows] of them, in `table` (an input, [positions, m]).
absl::StatusOr<Decomposition::Value> AnglesAt(Decomposition& d, int table,
                                              Decomposition::Value positions);

}  // namespace fusion
