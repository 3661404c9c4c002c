#pragma once

#include "core/rewrite/low_precision.h"

namespace fusion {

/// Unites blocks of a dim that a Concat puts side by side, where ops reduce along that dim, so that
/// one pass over the whole dim replaces one per block. A softmax over two blocks of scores (a
/// prefix and a cache) then needs what one over a single block needs:
///
///   concat(q k1, q k2)        ->  q concat(k1, k2)
///   p[:, :a] v1 + p[:, a:] v2 ->  p concat(v1, v2)
///
/// Concat commutes with every op that does not reduce along its dim. Element-wise ops that the
/// blocks share are computed once; those of one block (its mask) only there. Reductions with the
/// same body, such as products, become one reduction over the concatenation of the operands that
/// differ. A sum of reductions over adjacent parts becomes a reduction over the whole, in another
/// order: only if `reorder`. Results are bit-identical unless `reorder`.
///
/// Unchanged: blocks that other ops read, products without a common operand, operands that fewer
/// than 16 rows share (the copies would cost more than they save), and programs with open dims.
/// `leave` is called for the ops that would be replaced; true: they stay. True if the program
/// changed.
bool UniteSideBySide(bool reorder, Program* program, const LeaveProduct& leave = nullptr);

}  // namespace fusion
