#pragma once

#include <optional>
#include <vector>

#include "core/schedule/ir/schedule.h"
#include "core/smg/smg.h"

namespace fusion {

/// One dim that a product sums over: how long it is, and how many elements one step along it moves
/// in the operand that gives rows and in the one that gives columns.
struct SumDim {
  DimId dim = -1;
  double length = 1;
  int64_t rows = 0;
  int64_t columns = 0;
};

/// How often a product that walks `dims`, the last one fastest, leaves its innermost sum for the
/// next stretch of it, in turns of a product whose operands are near. Neighbouring dims that both
/// operands walk without a gap are one.
double TurnsOfSum(const std::vector<SumDim>& dims);

/// The order in which a product turns least often; the given one if no other is better. `laid_out`:
/// columns are copied into whatever order the product walks, and their strides do not matter. More
/// than four dims stay as they are.
std::vector<SumDim> LeastTurns(std::vector<SumDim> dims, bool laid_out);

/// How a long sum is made of blocks: each tile of a dim is summed on its own.
struct SumBlocks {
  DimId dim = -1;
  int64_t tile = 0;
  bool operator==(const SumBlocks&) const = default;
};

/// The blocks of a sum or product of floats over windows of these lengths, where `lanes` partial
/// results are made side by side. Each step rounds, and equal terms round the same way each time,
/// so the error grows with the number of steps. There are about as many blocks as a block has
/// steps. nullopt: it is no such reduction, or it is short enough.
std::optional<SumBlocks> BlocksOfSum(const SmgOp& op, const Dims& windows, int64_t lanes);

}  // namespace fusion
