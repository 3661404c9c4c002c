#pragma once

#include <vector>

#include "core/schedule/memory/local_buffers.h"

namespace fusion {

/// The code of one nest, before it is wrapped into loops and its buffers are allocated.
struct NestCode {
  Block code;
  Block once;  // what every tile of the temporal loop would do alike: stands before the loop
  std::vector<DimId> dims;     // iterated; plain nests: the last one along vectors
  std::vector<DimId> reduced;  // of those
  /// Dims along which it reads local buffers at other places than where it stands.
  std::vector<DimId> moved;
  DimId vector = -1;
  /// A dim that is walked in tiles of `block`, each with sums of its own (BlocksOfSum); -1: none.
  DimId blocked = -1;
  int64_t block = 0;
  bool product = false;
  bool placed = false;  // reduces at places: the less often it is walked the better
};

/// Appends the statements of `from`.
void Append(Block from, Block* to);

/// `body` in a loop over tiles of `dim`; over those of its coordinates from `begin` to before
/// `end`, if that is not -1.
Block LoopOver(DimId dim, int64_t tile, Block body, int64_t begin = 0, int64_t end = -1);

/// The buffers that live across sections.
Block AllocateShared(const LocalBuffers& locals);

/// Puts the nests of a section in order, wraps runs of plain nests into loops over their common
/// rows, and allocates each buffer as far inside as its uses allow. `windows`: length of each dim's
/// window in the block; `lanes`: elements of a vector; `together`: as many rows are worked on at
/// a time as a cache has room for, not as many as a vector has.
Block AssembleSection(int section, std::vector<NestCode> nests, const LocalBuffers& locals,
                      const Dims& windows, int64_t lanes, bool together);

}  // namespace fusion
