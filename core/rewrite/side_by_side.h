#pragma once

#include "core/rewrite/low_precision.h"

namespace fusion {

/// Makes one space of spaces that lie side by side along a dim, where something is reduced along
/// that dim, so that one pass over it serves all pieces. What a softmax over two blocks of scores
/// needs, a prefix and a cache, is then what one over a single block needs:
///
///   concat(q k1, q k2)        ->  q concat(k1, k2)
///   p[:, :a] v1 + p[:, a:] v2 ->  p concat(v1, v2)
///
/// Concat commutes with whatever does not reduce along its dim: element-wise ops that the pieces
/// have in common are done once, others (the mask of one block) where their piece is; reductions
/// with the same body, such as products, become one over the pieces of what differs. A sum of
/// reductions of neighbouring parts is a reduction of the whole (in another order: only if
/// `reorder`). Left as they are: pieces that others need too, products of which no common operand
/// is left, few rows, for which the pieces would be copied in vain. Bits change by `reorder` only.
/// Not in programs that leave dims open. `leave` is asked for the ops that would be gone: true, and
/// they stay. True if the program is another one than before.
bool UniteSideBySide(bool reorder, Program* program, const LeaveProduct& leave = nullptr);

}  // namespace fusion
