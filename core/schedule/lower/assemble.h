#pragma once

#include <vector>

#include "core/schedule/memory/local_buffers.h"

namespace fusion {

/// The code of one nest, before it is wrapped in loops and its buffers are allocated.
struct NestCode {
  Block code;
  Block once;                  // loop-invariant code, hoisted before the temporal loop
  std::vector<DimId> dims;     // iterated dims; element-wise nests: the last one is the vector dim
  std::vector<DimId> reduced;  // those of `dims` that it reduces
  /// Dims along which it reads local buffers at other coordinates than its own.
  std::vector<DimId> moved;
  DimId vector = -1;
  /// A dim walked in tiles of `block`, each with its own sum (BlocksOfSum); -1: none.
  DimId blocked = -1;
  int64_t block = 0;
  bool product = false;
  /// Reduces at looked-up places (EachStmt::place): best walked as rarely as possible.
  bool placed = false;
};

/// Moves the statements of `from` to the end of `to`.
void Append(Block from, Block* to);

/// A block with `body` in a loop over tiles of `dim`, restricted to the coordinates [begin, end) if
/// `end` is not -1.
Block LoopOver(DimId dim, int64_t tile, Block body, int64_t begin = 0, int64_t end = -1);

/// AllocStmts (and InitStmts) of the buffers that are used in several sections.
Block AllocateShared(const LocalBuffers& locals);

/// Assembles a section: keeps the nests in order, wraps runs of element-wise nests in loops over
/// their common rows, and allocates each buffer in the innermost block that holds all its uses.
/// `windows`: length of each dim's window in the block. `lanes`: f32 elements of a vector.
/// `together`: a run processes as many rows at a time as fit the nearest cache, not as many as a
/// vector has lanes.
Block AssembleSection(int section, std::vector<NestCode> nests, const LocalBuffers& locals,
                      const Dims& windows, int64_t lanes, bool together);

}  // namespace fusion
