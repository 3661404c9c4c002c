#pragma once

#include <string>
#include <vector>

#include "core/algebra/rules.h"
#include "core/base/refusal.h"
#include "core/smg/smg.h"

namespace fusion {

/// What an op of a streamed SMG does when a tile comes.
enum class StreamRole : uint8_t {
  kPlain,   // computes, or adds the tile to its partial result
  kBefore,  // computes from partial results as they are before the tile
  kUpdate,  // replaces the partial result of `target`, before that takes the tile
};

struct StreamOp {
  StreamRole role = StreamRole::kPlain;
  int target = -1;  // kUpdate: op
  int source = -1;  // op of the original SMG whose work this is part of
};

/// The temporal slicer's answer: may a dim be streamed through a block, tile by tile, and what is
/// then computed?
struct Streamed {
  enum Kind : uint8_t {
    kRefused,
    kStream,               // no reduction along the dim
    kSimpleAggregate,      // partial results accumulate; factors may wait until they are whole
    kUpdateThenAggregate,  // partial results are corrected when others they depend on change
  };
  Kind kind = kRefused;
  Refusal refusal;
  /// Equal to the given SMG in what it writes; ops[i] says what smg.ops[i] is for. Dims keep their
  /// numbers; values that only this form has get numbers above all others.
  Smg smg;
  std::vector<StreamOp> ops;
  bool rewritten = false;
  /// Taken apart so that where an input is not finite, a reduction that would be infinite or NaN
  /// may come out as something else, and with it what is computed from it, numbers too (tanh of an
  /// infinity): the certificate says where. What depends on finite reductions alone stays what it
  /// is.
  bool loose = false;
  /// Where tiles matter: each of these functions of the coordinates (of dims) is at least 0
  /// wherever some partial result changes, as far as masks made of comparisons of coordinates say.
  /// A tile without such a point may be left out; a NaN that a mask hides is then not seen. Empty:
  /// all do.
  std::vector<IndexExpr> needed;
  /// The same where masks are finite numbers, as exporters have them: tiles outside of these
  /// functions change nothing if, before them, every element of the partial maximum that op
  /// `maximum` makes is at least `least`, since what is masked underflows then. Empty: no such
  /// tiles.
  struct Underflow {
    std::vector<IndexExpr> needed;
    int maximum = -1;
    double least = 0;
  };
  Underflow underflow;
  /// Why dims that walk the same input at the same places are streamed one by one, so that the
  /// input is read once for each: the refusal of the form that reads it once. Empty if there is
  /// none.
  Refusal apart;
  /// For people: how each dependent reduction was taken apart, by what its partial results are
  /// multiplied, and what is assumed of NaN and infinities.
  std::vector<std::string> certificate;
};

/// Derives how `dim` is streamed. Reductions along it that depend on each other become
/// Update-then-Aggregate where algebra allows: what is reduced is taken apart into a part that the
/// tile gives and factors that other partial results give; factors wait until the end (broadcast
/// postposition) unless they keep an exponential small, then partial results are multiplied by
/// their change; polynomials in another partial result (variance) follow it by their derivatives.
///
/// `outputs`: values that leave the group. Every op with the dim that needs a finished result
/// otherwise, and every read at another place along the dim, is a refusal. Arithmetic is taken as
/// exact, and a value between two ops keeps more digits than its type where it can, so that results
/// differ by rounding. NaN and infinities come out as in the original, apart from what overflows on
/// the way (factors that wait until the end are not there to keep a sum small), from the sign of an
/// infinity that only an infinite factor makes, and where the form is `loose`. Pure; any
/// thread. The update form is that of FlashAttention (Dao et al. 2022) where the input is
/// attention; of centred moments that of Chan, Golub and LeVeque (1979).
Streamed StreamAlong(const Smg& smg, const std::vector<ValueId>& outputs, DimId dim,
                     const AlgebraRules& rules = {});

}  // namespace fusion
