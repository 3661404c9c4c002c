// The windows of halos over all blocks of a grid, counted without looking at each.
#include "core/schedule/memory/block_windows.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/base/text/text.h"

namespace fusion {
namespace {

// What every block reaches, one after the other.
BlockWindows OneByOne(const std::vector<ScheduleDim>& dims, const std::vector<GridDim>& grid,
                      const std::vector<Halo>& halos) {
  BlockWindows out;
  std::set<int64_t> lengths;
  double total = 0;
  out.blocks = 0;
  std::vector<int64_t> tiles(grid.size(), 0);
  for (bool more = true; more;) {
    std::vector<IndexRange> windows;
    for (const ScheduleDim& d : dims) windows.push_back({0, d.extent});
    auto window = [&](int d) { return windows[static_cast<size_t>(d)]; };
    for (size_t g = 0; g < grid.size(); ++g) {
      int64_t extent = window(grid[g].dim).end;
      int64_t begin = tiles[g] * grid[g].tile;
      windows[static_cast<size_t>(grid[g].dim)] = {begin, std::min(begin + grid[g].tile, extent)};
    }
    for (const Halo& h : halos) {
      auto d = static_cast<size_t>(h.dim);
      windows[d] = HaloRange(h, dims[d].extent, window);
    }
    IndexRange last = window(halos.back().dim);
    for (const IndexExpr& e : halos.back().reached) {
      IndexRange reached = RangeOf(e, window);
      out.clipped |= reached.begin < last.begin || reached.end > last.end;
    }
    lengths.insert(last.size());
    total += static_cast<double>(last.size());
    out.blocks += 1;
    more = false;
    for (size_t g = grid.size(); g-- > 0 && !more;) {
      more = ++tiles[g] * grid[g].tile < dims[static_cast<size_t>(grid[g].dim)].extent;
      if (!more) tiles[g] = 0;
    }
  }
  out.lengths.assign(lengths.begin(), lengths.end());
  out.average = total / out.blocks;
  return out;
}

TEST(BlockWindows, AreThoseOfEveryBlock) {
  std::mt19937_64 random(5);
  auto number = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  int clipped = 0;
  int ragged = 0;
  for (int i = 0; i < 2000; ++i) {
    // Dims 0 and 1 are cut, 2 is that of a filter; 3 is reached from them, 4 from 3.
    std::vector<ScheduleDim> dims;
    for (int64_t most : {40, 7, 3, 60, 60}) {
      dims.push_back({StrCat("d", dims.size()), number(1, most)});
    }
    std::vector<GridDim> grid = {{0, number(1, dims[0].extent)}};
    if (i % 2 == 0) grid.push_back({1, number(1, dims[1].extent)});
    std::vector<Halo> halos(2);
    for (int h : {0, 1}) {
      halos[static_cast<size_t>(h)].dim = 3 + h;
      for (int64_t e = number(1, 2); e > 0; --e) {
        IndexExpr at = IndexExpr::Axis(h == 0 ? 0 : 3, number(-2, 3)) + IndexExpr(number(-9, 9));
        if (number(0, 1) == 0) at = at + IndexExpr::Axis(2);
        if (number(0, 3) == 0) at = at + IndexExpr::Axis(1, number(1, 2));
        halos[static_cast<size_t>(h)].reached.push_back(at);
      }
    }
    std::vector<GridDim> below;  // dims that no window depends on cut nothing of it
    for (const GridDim& g : grid) {
      bool named = false;
      for (const Halo& h : halos) {
        for (const IndexExpr& e : h.reached) named |= e.CoefficientOf(g.dim) != 0;
      }
      if (named) below.push_back(g);
    }
    BlockWindows wanted = OneByOne(dims, below, halos);
    BlockWindows got = WindowsOfBlocks(dims, grid, halos)[4];
    SCOPED_TRACE(i);
    EXPECT_EQ(got.lengths, wanted.lengths);
    EXPECT_EQ(got.clipped, wanted.clipped);
    EXPECT_NEAR(got.average, wanted.average, 1e-9 * wanted.average);
    clipped += got.clipped ? 1 : 0;
    ragged += got.lengths.size() > 2 ? 1 : 0;
  }
  // Otherwise little was shown.
  EXPECT_GT(clipped, 100);
  EXPECT_GT(ragged, 100);
}

TEST(LongestWindows, AreTheLongestOfAllBlocks) {
  std::vector<ScheduleDim> dims = {{"a", 7}, {"b", 12}, {"c", 0}, {"d", 3}};
  const std::vector<std::vector<GridDim>> grids = {
      {}, {{0, 3}}, {{1, 4}, {3, 8}}, {{2, 2}}, {{0, 7}, {1, 5}, {2, 1}, {3, 1}}};
  for (const std::vector<GridDim>& grid : grids) {
    Dims wanted;
    for (const BlockWindows& w : WindowsOfBlocks(dims, grid, {})) wanted.push_back(w.longest());
    EXPECT_EQ(LongestWindows(dims, grid, {}), wanted);
  }
}

// As many blocks as a tensor may have elements: they cannot have been looked at.
TEST(BlockWindows, DoNotTakeLongerForMoreBlocks) {
  constexpr int64_t kExtent = int64_t{1} << 40;
  std::vector<ScheduleDim> dims = {{"o", kExtent}, {"k", 3}, {"i", kExtent}, {"p", kExtent}};
  std::vector<Halo> halos = {
      {.dim = 2, .reached = {IndexExpr::Axis(0) + IndexExpr::Axis(1) + IndexExpr(-1)}},
      {.dim = 3, .reached = {IndexExpr::Axis(2) + IndexExpr::Axis(1) + IndexExpr(-1)}}};
  std::vector<BlockWindows> windows = WindowsOfBlocks(dims, {{0, 1}}, halos);
  EXPECT_EQ(windows[2].lengths, (WindowLengths{2, 3}));
  EXPECT_EQ(windows[3].lengths, (WindowLengths{3, 4, 5}));
  EXPECT_TRUE(windows[3].clipped);
  EXPECT_EQ(windows[3].blocks, static_cast<double>(kExtent));
  EXPECT_NEAR(windows[3].average, 5, 1e-9);
  EXPECT_FALSE(HaloOfManyLengths(dims, {{0, 1}}, halos).has_value());
}

// What is read at every and at every second place is reached ever further apart.
TEST(BlockWindows, MayGrowFromBlockToBlock) {
  std::vector<ScheduleDim> dims = {{"o", int64_t{1} << 30}, {"i", int64_t{1} << 31}};
  std::vector<Halo> halos = {{.dim = 1, .reached = {IndexExpr::Axis(0), IndexExpr::Axis(0, 2)}}};
  EXPECT_EQ(HaloOfManyLengths(dims, {{0, 1}}, halos), 1);
  EXPECT_FALSE(HaloOfManyLengths(dims, {{0, int64_t{1} << 24}}, halos).has_value());
}

}  // namespace
}  // namespace fusion
