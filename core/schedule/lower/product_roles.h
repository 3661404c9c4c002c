#pragma once

#include <vector>

#include "core/schedule/lower/lower.h"

namespace fusion {

/// The dims of a product by role, as the choice assigns the operands.
struct ProductSides {
  int a = 0;  // the read that gives rows
  int b = 1;  // the read that gives columns
  std::vector<DimId> rows;
  std::vector<DimId> columns;
  std::vector<DimId> batch;
  std::vector<DimId> over;

  /// Dims of the operand that gives rows or columns, with `last` moved to the end: the order in
  /// which the operand is copied or packed.
  std::vector<DimId> RowOperandDims(DimId last) const;
  std::vector<DimId> ColumnOperandDims(DimId last) const;
};

/// How a choice assigns the operands of the group's products: which operand gives the columns, and
/// along which dims rows and columns of register blocks run. Keeps references to `group` and
/// `choice`. Internal to lowering.
class ProductRoles {
 public:
  /// `halos`: HalosOfChoice(group.smg, choice).
  ProductRoles(const FusionGroup& group, const Choice& choice, const std::vector<Halo>& halos);

  /// The sides of product `i`. FailedPrecondition if the operand that should give the columns has
  /// none.
  absl::StatusOr<ProductSides> SidesOf(int i) const;
  /// The choice for product `i`; a default block of 4 x 16 if there is none.
  const ProductChoice& ChoiceOf(int i) const;

  /// True if read r of op i is a constant that is packed in panels of columns before the first run.
  bool IsPacked(int i, int r) const;
  /// True if every tile along `d`, of tasks and of the temporal loop, begins at the start of a
  /// panel of product i's packed columns.
  bool HoldsPanels(int i, DimId d) const;

  /// The column dim of product i that vectors run along: the contiguous dim of the operand, else
  /// the last one. For packed columns, the last dim whose panels no task splits. `operand`: the
  /// local buffer that holds the columns if the group computes them, else null.
  DimId ColumnDim(int i, const ProductSides& sides, const Buffer* operand) const;

 private:
  const SmgOp& op(int i) const { return group_.smg.op(i); }

  const FusionGroup& group_;
  const Choice& choice_;
  std::vector<DimId> halos_;
};

}  // namespace fusion
