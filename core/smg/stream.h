#pragma once

#include <string>
#include <vector>

#include "core/algebra/rules.h"
#include "core/base/refusal.h"
#include "core/smg/smg.h"

namespace fusion {

/// What an op of a streamed SMG does for each tile.
enum class StreamRole : uint8_t {
  kPlain,   // computes, or accumulates the tile into its partial result
  kBefore,  // computes from the partial results as they were before the tile
  kUpdate,  // replaces the partial result of `target` before `target` accumulates the tile
};

/// The role of one op of Streamed::smg.
struct StreamOp {
  StreamRole role = StreamRole::kPlain;
  int target = -1;  // kUpdate: position of the updated op in Streamed::smg
  int source = -1;  // the op of the given SMG whose work this op is part of
};

/// The result of the temporal slicer: whether a block may stream a dim tile by tile, and what it
/// then computes.
struct Streamed {
  enum Kind : uint8_t {
    kRefused,
    kStream,               // no reduction along the dim
    kSimpleAggregate,      // partial results accumulate; factors may be applied after the last tile
    kUpdateThenAggregate,  // a partial result is corrected when one that it depends on changes
  };
  Kind kind = kRefused;
  Refusal refusal;
  /// Computes the same outputs as the given SMG. ops[i] describes smg.ops[i]. Dims keep their
  /// numbers; values that only this form has are numbered above all others.
  Smg smg;
  std::vector<StreamOp> ops;
  /// True if `smg` is not the given SMG.
  bool rewritten = false;
  /// Results may differ from the original where an input is not finite: a reduction that would be
  /// infinite or NaN may get another value, and so may what is computed from it, finite numbers
  /// included (tanh of an infinity). The certificate says where. Results that depend on finite
  /// reductions only do not differ.
  bool loose = false;
  /// Which tiles can be skipped, derived from masks made of comparisons of coordinates. Each of
  /// these functions of the coordinates (axes are dims) is >= 0 at every point that changes a
  /// partial result. A tile without such a point may be skipped; a NaN that the mask hides is then
  /// not seen. Empty: no tile can be skipped.
  std::vector<IndexExpr> needed;
  /// The same for masks of finite numbers, as exporters write them. A tile without a point where
  /// all of `needed` are >= 0 changes nothing if, before the tile, every element of the partial
  /// maximum of op `maximum` is at least `least`: masked values then underflow. Empty `needed`: no
  /// such tiles.
  struct Underflow {
    std::vector<IndexExpr> needed;
    int maximum = -1;
    double least = 0;
  };
  Underflow underflow;
  /// Set if other dims read the same input at the same indices (WithCompanions) but could not be
  /// streamed together with this one, so that the input is read once per dim: the refusal of the
  /// united form. Empty: not the case.
  Refusal apart;
  /// For people: how each dependent reduction was factored, the factors of its partial results, and
  /// what is assumed about NaN and infinities.
  std::vector<std::string> certificate;
};

/// Derives how `dim` is streamed. `outputs`: values that leave the group.
///
/// Reductions along the dim that depend on each other become Update-then-Aggregate where algebra
/// allows it. The reduced expression is factored into a part that depends on the tile and factors
/// that depend on other partial results. Factors are applied after the last tile (broadcast
/// postposition), except those that keep an exponential small: partial results are multiplied by
/// the change of these at each tile. Polynomials in another partial result (variance) follow it by
/// their derivatives. `rules`: the algebraic rules that may be used.
///
/// Refused, with `kind` kRefused: reads of intermediates at another coordinate along the dim
/// (CrossesAlong); ops with the dim that need a finished result along it; and dependent reductions
/// that cannot be factored, or whose factored form would add NaN or unbounded rounding errors.
///
/// Accuracy: arithmetic is treated as exact, and a value between two ops keeps more digits than its
/// type where possible, so results differ by rounding. NaN and infinities are those of the
/// original, except where the form is `loose`, where intermediate results overflow (a factor that
/// is applied at the end does not keep a sum small), and for the sign of an infinity that only an
/// infinite factor causes.
///
/// Pure; any thread. For attention the update form is that of FlashAttention (Dao et al. 2022); for
/// centred moments that of Chan, Golub and LeVeque (1979).
Streamed StreamAlong(const Smg& smg, const std::vector<ValueId>& outputs, DimId dim,
                     const AlgebraRules& rules = {});

}  // namespace fusion
