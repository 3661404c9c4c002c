#pragma once

#include <optional>
#include <vector>

#include "core/schedule/ir/schedule.h"
#include "core/smg/smg.h"

namespace fusion {

/// A dim that a product sums over.
struct SumDim {
  DimId dim = -1;
  /// Extent of the dim.
  double length = 1;
  /// Distance in elements that one step along the dim moves in the operand that gives rows, and in
  /// the one that gives columns.
  int64_t rows = 0;
  int64_t columns = 0;
};

/// Cost of the jumps of a product that walks `dims`, the last one fastest: how often it leaves one
/// contiguous piece of its operands for the next. 0: it never does. The unit is a jump to a piece
/// that is in the nearest cache; jumps between pieces of rows weigh more. Neighbouring dims that
/// both operands walk without a gap count as one.
double JumpsOfSum(const std::vector<SumDim>& dims);

/// The order of `dims` with the least JumpsOfSum; the given order if no other is better.
/// `laid_out`: columns are copied in the order in which the product walks them. Their strides do
/// not count, and the result has those of the copy. More than four dims are returned unchanged.
std::vector<SumDim> LeastJumps(std::vector<SumDim> dims, bool laid_out);

/// Splits a long sum into blocks: each tile of `dim` is summed on its own.
struct SumBlocks {
  DimId dim = -1;
  int64_t tile = 0;
  bool operator==(const SumBlocks&) const = default;
};

/// Blocks for a sum or product of floats over windows of these lengths with `lanes` partial
/// results. Each addition rounds, and equal terms round alike each time, so the error of one long
/// sum grows with the number of steps. There are about as many blocks as steps in a block.
/// `windows`: by dim of the SMG. nullopt: `op` is no such reduction, or it is short enough (at
/// most 8192 steps for each lane).
std::optional<SumBlocks> BlocksOfSum(const SmgOp& op, const Dims& windows, int64_t lanes);

}  // namespace fusion
