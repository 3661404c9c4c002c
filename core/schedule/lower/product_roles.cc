#include "core/schedule/lower/product_roles.h"

#include <algorithm>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

std::vector<DimId> Joined(std::initializer_list<const std::vector<DimId>*> lists, DimId last) {
  std::vector<DimId> dims;
  for (const std::vector<DimId>* list : lists) {
    for (DimId d : *list) {
      if (d != last) dims.push_back(d);
    }
  }
  dims.push_back(last);
  return dims;
}

}  // namespace

std::vector<DimId> ProductSides::RowOperandDims(DimId last) const {
  return Joined({&batch, &rows, &over}, last);
}

std::vector<DimId> ProductSides::ColumnOperandDims(DimId last) const {
  return Joined({&batch, &columns, &over}, last);
}

ProductRoles::ProductRoles(const FusionGroup& group, const Choice& choice,
                           const std::vector<Halo>& halos)
    : group_(group), choice_(choice) {
  for (const Halo& h : halos) halos_.push_back(h.dim);
}

absl::StatusOr<ProductSides> ProductRoles::SidesOf(int i) const {
  ProductDims dims = SplitProductDims(op(i));
  ProductSides sides;
  sides.rows = dims.first;
  sides.columns = dims.second;
  if (ChoiceOf(i).swap) {
    std::swap(sides.a, sides.b);
    std::swap(sides.rows, sides.columns);
  }
  sides.batch = dims.batch;
  sides.over = dims.over;
  if (sides.columns.empty()) {
    return RefusalStatus(RefusalCode::kRoles, op(i).label, " has no columns on that side");
  }
  return sides;
}

const ProductChoice& ProductRoles::ChoiceOf(int i) const {
  static const ProductChoice kDefault{.block = {4, 16}};
  auto it = choice_.products.find(i);
  return it == choice_.products.end() ? kDefault : it->second;
}

bool ProductRoles::IsPacked(int i, int r) const {
  if (Classify(group_, i) != OpClass::kProduct) return false;
  const SmgRead& read = op(i).reads[static_cast<size_t>(r)];
  return read.producer < 0 && r == (ChoiceOf(i).swap ? 0 : 1) && group_.view(read.value).constant;
}

bool ProductRoles::HoldsPanels(int i, DimId d) const {
  if (Contains(halos_, d)) return false;
  int64_t extent = choice_.MostOf(group_.smg, d);
  int64_t tile = d == choice_.temporal ? choice_.temporal_tile : extent;
  for (const GridDim& g : choice_.grid) tile = g.dim == d ? g.tile : tile;
  return tile >= extent || tile % ChoiceOf(i).block.n == 0;
}

DimId ProductRoles::ColumnDim(int i, const ProductSides& sides, const Buffer* operand) const {
  const SmgRead& read = op(i).reads[static_cast<size_t>(sides.b)];
  if (IsPacked(i, sides.b)) {
    auto whole = std::find_if(sides.columns.rbegin(), sides.columns.rend(),
                              [&](DimId d) { return HoldsPanels(i, d); });
    return whole == sides.columns.rend() ? sides.columns.back() : *whole;
  }
  if (read.producer < 0 && !group_.view(read.value).constant) {
    for (DimId d : sides.columns) {
      if (StrideAlong(read.index, group_.view(read.value).strides, d) == 1) return d;
    }
  }
  if (operand != nullptr && !operand->dims.empty() &&
      Contains(sides.columns, operand->dims.back())) {
    return operand->dims.back();
  }
  return sides.columns.back();
}

}  // namespace fusion
