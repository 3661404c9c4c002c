#pragma once

#include <vector>

#include "core/schedule/lower/lower.h"

namespace fusion {

/// The sides of a product as the choice assigns them.
struct ProductSides {
  int a = 0;  // read that gives rows
  int b = 1;  // read that gives columns
  std::vector<DimId> rows;
  std::vector<DimId> columns;
  std::vector<DimId> batch;
  std::vector<DimId> over;

  /// Dims of the operand that gives rows or columns, with `last` behind all others: the order in
  /// which it is copied or packed.
  std::vector<DimId> RowOperandDims(DimId last) const;
  std::vector<DimId> ColumnOperandDims(DimId last) const;
};

/// What a choice makes of the products of a group: which operand gives the columns, which dims rows
/// and columns of register blocks run along. A view of what it is made from. Internal to lowering.
class ProductRoles {
 public:
  /// `halos`: those of the choice.
  ProductRoles(const FusionGroup& group, const Choice& choice, const std::vector<Halo>& halos);

  /// Of op i, which is a product. FailedPrecondition if it has no columns on the side that gives
  /// them.
  absl::StatusOr<ProductSides> SidesOf(int i) const;
  const ProductChoice& ChoiceOf(int i) const;

  /// True if read r of op i is a constant that is laid out in panels before the first run.
  bool IsPacked(int i, int r) const;
  /// True if tiles along `d` of tasks, or of the temporal loop, begin where a panel of packed
  /// columns of product i does.
  bool HoldsPanels(int i, DimId d) const;

  /// The column dim of product i that vectors run along: where the operand is contiguous, else the
  /// last one; of packed columns the last one that tasks do not cut inside a panel. `operand`: the
  /// buffer that holds the columns if an op of the group computed them, else null.
  DimId ColumnDim(int i, const ProductSides& sides, const Buffer* operand) const;

 private:
  const SmgOp& op(int i) const { return group_.smg.op(i); }

  const FusionGroup& group_;
  const Choice& choice_;
  std::vector<DimId> halos_;
};

}  // namespace fusion
