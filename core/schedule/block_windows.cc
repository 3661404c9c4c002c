#include "core/schedule/block_windows.h"

#include <algorithm>
#include <set>

#include "core/base/contains.h"

namespace fusion {
namespace {

// The dims of the grid that the window of a halo depends on, through others too.
std::vector<GridDim> GridBelow(const std::vector<GridDim>& grid, const std::vector<Halo>& halos,
                               size_t h) {
  std::set<DimId> below;
  for (size_t i = h + 1; i-- > 0;) {
    if (i != h && !below.contains(halos[i].dim)) continue;
    for (const IndexExpr& e : halos[i].reached) {
      for (const IndexExpr::Term& t : e.terms()) below.insert(t.axis);
    }
  }
  std::vector<GridDim> out;
  for (const GridDim& g : grid) {
    if (below.contains(g.dim)) out.push_back(g);
  }
  return out;
}

// Goes through the blocks of a grid and looks at the window of the last halo.
class HaloBlocks {
 public:
  HaloBlocks(const std::vector<ScheduleDim>& dims, std::vector<GridDim> grid,
             const std::vector<Halo>& halos, size_t last)
      : grid_(std::move(grid)), halos_(halos), last_(last) {
    for (const ScheduleDim& d : dims) whole_.push_back({0, d.extent});
    windows_ = whole_;
  }

  BlockWindows Run() {
    Visit(0);
    if (count_ > 0) out_.average = total_ / count_;
    out_.blocks = count_;
    out_.lengths.assign(lengths_.begin(), lengths_.end());
    return std::move(out_);
  }

 private:
  void Visit(size_t level) {
    if (level == grid_.size()) {
      Look();
      return;
    }
    const GridDim& g = grid_[level];
    auto d = static_cast<size_t>(g.dim);
    for (int64_t begin = 0; begin < whole_[d].end; begin += g.tile) {
      windows_[d] = {begin, std::min(begin + g.tile, whole_[d].end)};
      Visit(level + 1);
    }
  }

  void Look() {
    auto window = [this](int d) { return windows_[static_cast<size_t>(d)]; };
    for (size_t h = 0; h <= last_; ++h) {
      auto d = static_cast<size_t>(halos_[h].dim);
      windows_[d] = HaloRange(halos_[h], whole_[d].end, window);
    }
    const Halo& halo = halos_[last_];
    IndexRange range = windows_[static_cast<size_t>(halo.dim)];
    for (const IndexExpr& e : halo.reached) {
      IndexRange reached = RangeOf(e, window);
      out_.clipped = out_.clipped || reached.begin < range.begin || reached.end > range.end;
    }
    lengths_.insert(range.size());
    total_ += static_cast<double>(range.size());
    count_ += 1;
  }

  std::vector<GridDim> grid_;
  const std::vector<Halo>& halos_;
  size_t last_;
  std::vector<IndexRange> whole_;
  std::vector<IndexRange> windows_;
  BlockWindows out_;
  std::set<int64_t> lengths_;
  double total_ = 0;
  double count_ = 0;
};

}  // namespace

WindowLengths TileLengths(const WindowLengths& windows, int64_t tile) {
  WindowLengths out;
  for (int64_t w : windows) {
    if (w >= tile) out.push_back(tile);
    if (w % tile != 0) out.push_back(w % tile);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<BlockWindows> WindowsOfBlocks(const std::vector<ScheduleDim>& dims,
                                          const std::vector<GridDim>& grid,
                                          const std::vector<Halo>& halos) {
  std::vector<BlockWindows> out;
  for (const ScheduleDim& d : dims) {
    out.push_back({.lengths = {d.extent}, .average = static_cast<double>(d.extent)});
  }
  for (const GridDim& g : grid) {
    BlockWindows& windows = out[static_cast<size_t>(g.dim)];
    int64_t extent = dims[static_cast<size_t>(g.dim)].extent;
    windows.lengths = TileLengths({extent}, g.tile);
    int64_t tiles = (extent + g.tile - 1) / g.tile;
    windows.blocks = static_cast<double>(tiles);
    windows.average = tiles > 0 ? static_cast<double>(extent) / windows.blocks : 0;
  }
  for (size_t h = 0; h < halos.size(); ++h) {
    out[static_cast<size_t>(halos[h].dim)] =
        HaloBlocks(dims, GridBelow(grid, halos, h), halos, h).Run();
  }
  return out;
}

Dims LongestWindows(const std::vector<ScheduleDim>& dims, const std::vector<GridDim>& grid,
                    const std::vector<Halo>& halos) {
  Dims out;
  for (const BlockWindows& w : WindowsOfBlocks(dims, grid, halos)) out.push_back(w.longest());
  return out;
}

}  // namespace fusion
