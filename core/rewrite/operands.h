#pragma once

#include <optional>

#include "core/graph/program/program.h"

namespace fusion {

// What the operands of products are made from, for passes over programs.

/// The loop op that writes a value in place, an element at a time; null: none does. What it reads
/// may be elsewhere.
const LoopOp* ElementwiseOf(const Program& program, ValueId value);

/// `index` over the dims of what read `read` of `body` reads, as one over the dims that `body`
/// writes. nullopt: it differs along what is summed up, or along windows.
std::optional<IndexMap> OverOutput(const LoopBody& body, size_t read, const IndexMap& index);

/// The summed axis that an index walks as it is; -1: it does not.
int SummedAxis(const LoopBody& body, const IndexExpr& index);

/// Whether an index adds something to an axis that `body` writes: windows that slide along an
/// image. One that adds up summed axes walks one dim in stretches, as rows that come from several
/// heads.
bool SlidesWindows(const LoopBody& body, const IndexMap& index);

}  // namespace fusion
