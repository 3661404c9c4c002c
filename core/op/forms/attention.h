#pragma once

#include <vector>

#include "core/op/forms.h"

namespace fusion {

/// Common steps of the attention ops: softmax(scores + addends) v for each head, where scores =
/// q k^T * scale. Shapes: q [batch, heads, rows, n], k [batch, heads, keys, n], v [batch, heads,
/// keys, m], scores [batch, heads, rows, keys]. Extents are static. A row is the position of a
/// query.

/// q k^T, [batch, heads, rows, keys].
absl::StatusOr<Decomposition::Value> HeadProducts(Decomposition& d, Decomposition::Value q,
                                                  Decomposition::Value k);
/// Soft cap: c * tanh(scores / c) if c > 0, else `scores`.
absl::StatusOr<Decomposition::Value> Capped(Decomposition& d, Decomposition::Value scores,
                                            double c);

/// Operands of the attention as ONNX Runtime's ops define it.
struct AttentionForm {
  Decomposition::Value q = 0;
  Decomposition::Value k = 0;
  Decomposition::Value v = 0;
  double scale = 0;                                // 0: 1 / sqrt n
  double softcap = 0;                              // c > 0: scores are c * tanh(scores / c)
  std::vector<Decomposition::Value> addends = {};  // broadcast to [batch, heads, rows, keys]
};
/// softmax(scores + addends) v: [batch, heads, rows, m].
absl::StatusOr<Decomposition::Value> Attend(Decomposition& d, const AttentionForm& form);

/// x [batch, rows, heads * n] as [batch, heads, rows, n], and back. IntoHeads: InvalidArgument
/// unless x has three static dims, the last one a multiple of `heads`.
absl::StatusOr<Decomposition::Value> IntoHeads(Decomposition& d, Decomposition::Value x,
                                               int64_t heads);
absl::StatusOr<Decomposition::Value> OutOfHeads(Decomposition& d, Decomposition::Value x);

/// Grouped queries: repeats each head of keys or values [batch, heads, keys, n] `times` times, once
/// for each query head that shares it. Result: [batch, heads * times, keys, n].
absl::StatusOr<Decomposition::Value> ForHeadsOfQueries(Decomposition& d, Decomposition::Value x,
                                                       int64_t times);

/// The keys that are visible to a row, by their distance from its position and by their own
/// position.
struct KeyWindow {
  static constexpr Decomposition::Value kFromZero = -1;
  /// Position of row 0 among the keys, i64; broadcasts to [batch, 1, rows, keys]. kFromZero: 0.
  Decomposition::Value first = kFromZero;
  /// Number of visible keys before, and after (`behind`), the position of the row; -1: all. The key
  /// at the position is visible.
  int64_t before = -1;
  int64_t behind = -1;
  static constexpr Decomposition::Value kAll = -1;
  /// The first key that is visible to no row; type and shape as `first`. kAll: there is none.
  Decomposition::Value end = kAll;
  bool hides() const { return before >= 0 || behind >= 0 || end != kAll; }
};
/// bool: whether a key is visible to a row; broadcasts to [batch, heads, rows, keys]. Requires
/// window.hides().
absl::StatusOr<Decomposition::Value> SeenThrough(Decomposition& d, const KeyWindow& window,
                                                 int64_t rows, int64_t keys);
/// An addend to scores: 0 where `seen` is true, else `hidden`. It has the type of `hidden`.
absl::StatusOr<Decomposition::Value> AddendOf(Decomposition& d, Decomposition::Value seen,
                                              Decomposition::Value hidden);

/// A mask and a window that hide keys from rows.
struct HiddenKeys {
  /// Number of the mask input, i32; -1, or an absent input: no mask. By its shape it is
  ///   - [batch]: end of the visible keys;
  ///   - [2 * batch]: ends, then begins;
  ///   - [3 * batch + 2]: ends; the other elements are ignored;
  ///   - [batch, keys] or [batch, rows, keys]: above 0 for visible keys.
  int mask = -1;
  KeyWindow window = {};
};
/// The addends to scores of type `type`; `scores` is their shape. Keys outside the window get
/// -infinity. Masked keys get attribute "mask_filter_value" (absent: -10000): if all keys of a row
/// are masked, all count, as in ONNX Runtime. Unimplemented for a mask of another type or shape.
absl::StatusOr<std::vector<Decomposition::Value>> AddendsOf(Decomposition& d,
                                                            const HiddenKeys& hidden,
                                                            const Dims& scores, DType type);

/// InvalidArgument unless input `input` is [batch or 1, heads or 1, rows, keys] of type `type`;
/// `scores` is [batch, heads, rows, keys].
absl::Status CheckAttentionBias(const OpCall& call, int input, DType type, const Dims& scores);

/// Input numbers of an op that also computes the projection (Attention, QAttention). An input may
/// be absent in the call.
struct ProjectedAttention {
  int mask = 0;
  int past = 0;
  int bias = -1;  // -1: the op has none
};
/// The attributes of such an op.
std::vector<ParamSpec> ProjectedAttentionParams();
/// Output 0 of such an op, [batch, rows, heads * m], from the projection `all`: queries, keys and
/// values side by side, [batch, rows, sum of the three widths]. Sets output 1, if named, to keys
/// and values including the past: [2, batch, heads, past + rows, n].
absl::StatusOr<Decomposition::Value> AttendProjected(Decomposition& d, Decomposition::Value all,
                                                     const ProjectedAttention& inputs);

/// InvalidArgument unless inputs `cosines` and `cosines` + 1 are tables [positions, turned / 2] of
/// input 0's type, and `turned`, the number of rotated elements of a head, is even and in
/// 2..`head`, the size of a head.
absl::Status CheckRotaryTables(const OpCall& call, int cosines, int64_t turned, int64_t head);
/// Rotary embedding of x [batch, heads, rows, n]: rotates m pairs among the first 2 * m elements of
/// each head. A pair is elements i and m + i or, if `interleaved`, 2 i and 2 i + 1. `cosines` and
/// `sines` are [rows, m] or [batch, 1, rows, m]. x may also be [batch, rows, heads, n] if they
/// broadcast to it.
absl::StatusOr<Decomposition::Value> Rotated(Decomposition& d, Decomposition::Value x,
                                             Decomposition::Value cosines,
                                             Decomposition::Value sines, bool interleaved);
/// The rows of input `table` ([positions, m]) for `positions` ([rows] or [batch, rows]), in the
/// shape that Rotated takes.
absl::StatusOr<Decomposition::Value> AnglesAt(Decomposition& d, int table,
                                              Decomposition::Value positions);

}  // namespace fusion
