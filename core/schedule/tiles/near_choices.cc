#include "core/schedule/tiles/near_choices.h"

#include <algorithm>

#include "core/base/contains.h"
#include "core/schedule/lower/nests.h"
#include "core/schedule/lower/product_shape.h"
#include "core/schedule/lower/streamed_group.h"
#include "core/schedule/tiles/legal_choice.h"

namespace fusion {
namespace {

// Factors on the number of blocks along a dim.
constexpr double kMoreBlocks = 2;
constexpr double kFewerBlocks = 0.5;

bool SameProduct(const ProductChoice& a, const ProductChoice& b) {
  return a.swap == b.swap && a.block.m == b.block.m && a.block.n == b.block.n &&
         a.stage_rows == b.stage_rows;
}

bool Same(const Choice& a, const Choice& b) {
  return a.grid == b.grid && a.temporal == b.temporal && a.temporal_tile == b.temporal_tile &&
         std::equal(a.products.begin(), a.products.end(), b.products.begin(), b.products.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && SameProduct(x.second, y.second);
                    });
}

class Neighbourhood {
 public:
  Neighbourhood(const FusionGroup& group, const Choice& choice, const DeviceSpec& device,
                bool bitwise)
      : group_(group), choice_(choice), device_(device), bitwise_(bitwise) {}

  std::vector<Choice> Find() {
    OtherBlocks();
    OtherRoles();
    OtherGrids();
    OtherSlices();
    return std::move(found_);
  }

 private:
  int64_t extent(DimId d) const { return group_.smg.dim(d).extent; }

  // The op of the group that an entry of Choice::products is about.
  int SourceOf(int op) const {
    const StreamedGroup* form = choice_.streamed.get();
    return form == nullptr ? op : form->ops[static_cast<size_t>(op)].source;
  }

  // Lengths of tiles along a dim are multiples of this: blocks of the columns begin where panels
  // do.
  int64_t UnitOf(DimId d, const Choice& choice) const {
    int64_t unit = 1;
    for (const auto& [op, product] : choice.products) {
      const int source = SourceOf(op);
      if (source < 0) continue;
      const ProductDims dims = SplitProductDims(group_.smg.op(source));
      const std::vector<DimId>& columns = product.swap ? dims.first : dims.second;
      const std::vector<DimId>& rows = product.swap ? dims.second : dims.first;
      if (Contains(columns, d)) unit = std::max<int64_t>(unit, product.block.n);
      if (!Contains(rows, d)) continue;
      const DType type = RateType(group_, source, product.swap, device_);
      unit = std::max<int64_t>(unit, device_.RowGrainOf(type));
    }
    return unit;
  }

  // The tile with which there are about `times` as many blocks along a dim of the grid.
  int64_t TileFor(const GridDim& g, double times, const Choice& choice) const {
    const int64_t n = std::max<int64_t>(1, extent(g.dim));
    const int64_t blocks = (n + g.tile - 1) / g.tile;
    const auto wanted =
        std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(blocks) * times));
    const int64_t unit = UnitOf(g.dim, choice);
    const int64_t tile = ((n + wanted - 1) / wanted + unit - 1) / unit * unit;
    return std::clamp<int64_t>(tile, 1, n);
  }

  void Add(Choice choice) {
    if (Same(choice, choice_) || !CheckChoice(group_, choice, device_, bitwise_).ok()) return;
    const bool known = std::any_of(found_.begin(), found_.end(),
                                   [&](const Choice& other) { return Same(other, choice); });
    if (!known) found_.push_back(std::move(choice));
  }

  void OtherGrids() {
    for (size_t g = 0; g < choice_.grid.size(); ++g) {
      for (double times : {kMoreBlocks, kFewerBlocks}) {
        Choice c = choice_;
        c.grid[g].tile = TileFor(choice_.grid[g], times, choice_);
        for (size_t other = 0; other < choice_.grid.size(); ++other) {
          if (other == g || times != kMoreBlocks) continue;
          Choice both = c;
          both.grid[other].tile = TileFor(choice_.grid[other], kFewerBlocks, choice_);
          if (!(both.grid[other] == c.grid[other])) Add(std::move(both));
        }
        Add(std::move(c));
      }
    }
  }

  // Products with equal blocks get another block together, as products of one nest must.
  void OtherBlocks() {
    std::vector<RegisterBlock> used;
    for (const auto& [op, product] : choice_.products) {
      const RegisterBlock& from = product.block;
      auto same = [](const RegisterBlock& a, const RegisterBlock& b) {
        return a.m == b.m && a.n == b.n;
      };
      if (std::any_of(used.begin(), used.end(), [&](const auto& b) { return same(b, from); })) {
        continue;
      }
      const int source = SourceOf(op);
      if (source < 0) continue;
      used.push_back(from);
      const DType type = RateType(group_, source, product.swap, device_);
      for (const RegisterBlock& to : device_.BlocksOf(type)) {
        if (same(to, from)) continue;
        Choice c = choice_;
        for (auto& [other, changed] : c.products) {
          if (same(changed.block, from)) changed.block = to;
        }
        // Panels are as wide as blocks.
        for (GridDim& g : c.grid) g.tile = TileFor(g, 1, c);
        Add(std::move(c));
      }
    }
  }

  void OtherRoles() {
    for (const auto& [op, product] : choice_.products) {
      Choice staged = choice_;
      staged.products[op].stage_rows = !product.stage_rows;
      Add(std::move(staged));
      Choice swapped = choice_;
      swapped.products[op].swap = !product.swap;
      for (GridDim& g : swapped.grid) g.tile = TileFor(g, 1, swapped);
      Add(std::move(swapped));
    }
  }

  void OtherSlices() {
    if (choice_.temporal < 0) return;
    const int64_t unit = device_.blocks.empty() ? 1 : device_.blocks[0].n;
    for (int64_t tile : {choice_.temporal_tile * 2, choice_.temporal_tile / 2}) {
      Choice c = choice_;
      const int64_t whole = (tile + unit - 1) / unit * unit;
      c.temporal_tile = std::clamp<int64_t>(whole, 1, std::max<int64_t>(1, extent(c.temporal)));
      Add(std::move(c));
    }
  }

  const FusionGroup& group_;
  const Choice& choice_;
  const DeviceSpec& device_;
  const bool bitwise_;
  std::vector<Choice> found_;
};

}  // namespace

std::vector<Choice> ChoicesNear(const FusionGroup& group, const Choice& choice,
                                const DeviceSpec& device, bool bitwise) {
  return Neighbourhood(group, choice, device, bitwise).Find();
}

}  // namespace fusion
