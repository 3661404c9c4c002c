#pragma once

#include <optional>

#include "core/graph/program/program.h"

namespace fusion {

// Analysis of the operands of products, for passes over programs. Pure; any thread.

/// The loop op without a reduction that writes `value` with output coordinates equal to its axes.
/// It may read its inputs at other coordinates. nullptr if no such op writes the value. The pointer
/// is into `program`.
const LoopOp* ElementwiseOf(const Program& program, ValueId value);

/// `index` is a map over the dims of the tensor that read `read` of `body` reads. Returns the same
/// map over the dims that `body` writes. nullopt if it varies along a reduced axis or a window, or
/// is indirect.
std::optional<IndexMap> OverOutput(const LoopBody& body, size_t read, const IndexMap& index);

/// The reduced axis of `body` that `index` is equal to; -1: none.
int SummedAxis(const LoopBody& body, const IndexExpr& index);

/// Whether an index adds another axis to one that `body` writes: a window that slides along an
/// image. An index that adds up reduced axes only is no window; it reads one dim in stretches (rows
/// of several heads).
bool SlidesWindows(const LoopBody& body, const IndexMap& index);

}  // namespace fusion
