#include "core/schedule/memory/block_windows.h"

#include <algorithm>
#include <limits>
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

int Sign(int64_t n) { return n > 0 ? 1 : n < 0 ? -1 : 0; }

// The windows of the last halo over the blocks of a grid. Blocks are counted in boxes, for there
// may be more of them than can be looked at: where all corners of a box are bounded by the same
// things, so are the blocks between them, whose windows then are linear in the numbers of their
// tiles.
class HaloBlocks {
 public:
  // Lengths beyond `most` are not sought.
  HaloBlocks(const std::vector<ScheduleDim>& dims, std::vector<GridDim> grid,
             const std::vector<Halo>& halos, size_t last, size_t most)
      : grid_(std::move(grid)), halos_(halos), last_(last), most_(most) {
    for (const ScheduleDim& d : dims) whole_.push_back({0, d.extent});
    windows_ = whole_;
  }

  BlockWindows Run() {
    std::vector<IndexRange> box;
    Cut(&box);
    if (count_ > 0) out_.average = total_ / count_;
    out_.blocks = count_;
    out_.lengths.assign(lengths_.begin(), lengths_.end());
    return std::move(out_);
  }

 private:
  // Along each dim of the grid the whole tiles, then the shorter last one. A box holds the numbers
  // of tiles by dim of the grid.
  void Cut(std::vector<IndexRange>* box) {
    if (box->size() == grid_.size()) {
      Visit(*box);
      return;
    }
    const GridDim& g = grid_[box->size()];
    int64_t extent = whole_[static_cast<size_t>(g.dim)].end;
    int64_t whole = extent / g.tile;
    for (IndexRange tiles : {IndexRange{0, whole}, IndexRange{whole, whole + 1}}) {
      if (tiles.empty() || tiles.begin * g.tile >= extent) continue;
      box->push_back(tiles);
      Cut(box);
      box->pop_back();
    }
  }

  void Visit(const std::vector<IndexRange>& box) {
    if (lengths_.size() > most_) return;
    std::vector<int> bounded;
    std::set<int64_t> lengths;
    bool alike = true;
    for (size_t corner = 0; corner < size_t{1} << box.size() && alike; ++corner) {
      for (size_t i = 0; i < box.size(); ++i) {
        const GridDim& g = grid_[i];
        auto d = static_cast<size_t>(g.dim);
        int64_t begin = ((corner >> i & 1) != 0 ? box[i].end - 1 : box[i].begin) * g.tile;
        windows_[d] = {begin, std::min(begin + g.tile, whole_[d].end)};
      }
      std::vector<int> here;
      lengths.insert(Look(&here));
      alike = corner == 0 || here == bounded;
      bounded = std::move(here);
    }
    if (!alike || lengths.size() > 1) {
      auto longest = std::max_element(
          box.begin(), box.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
      int64_t half = longest->begin + longest->size() / 2;
      for (IndexRange part : {IndexRange{longest->begin, half}, IndexRange{half, longest->end}}) {
        std::vector<IndexRange> smaller = box;
        smaller[static_cast<size_t>(longest - box.begin())] = part;
        Visit(smaller);
      }
      return;
    }
    double blocks = 1;
    for (const IndexRange& tiles : box) blocks *= static_cast<double>(tiles.size());
    lengths_.insert(*lengths.begin());
    total_ += blocks * static_cast<double>(*lengths.begin());
    count_ += blocks;
  }

  // The length of the window in the block that windows_ say. `bounded`: which of what is reached,
  // and which border of the dim, bounds the window of every halo.
  int64_t Look(std::vector<int>* bounded) {
    auto window = [this](int d) { return windows_[static_cast<size_t>(d)]; };
    IndexRange range;
    for (size_t h = 0; h <= last_; ++h) {
      auto d = static_cast<size_t>(halos_[h].dim);
      range = HaloRange(halos_[h], whole_[d].end, window);
      windows_[d] = range;
      for (const IndexExpr& e : halos_[h].reached) {
        IndexRange reached = RangeOf(e, window);
        bounded->push_back(Sign(range.begin - reached.begin));
        bounded->push_back(Sign(range.end - reached.end));
        bool beyond = reached.begin < range.begin || reached.end > range.end;
        out_.clipped = out_.clipped || (h == last_ && beyond);
      }
    }
    return range.size();
  }

  std::vector<GridDim> grid_;
  const std::vector<Halo>& halos_;
  size_t last_;
  size_t most_;
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
  out.reserve(dims.size());
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
        HaloBlocks(dims, GridBelow(grid, halos, h), halos, h, std::numeric_limits<size_t>::max())
            .Run();
  }
  return out;
}

std::optional<DimId> HaloOfManyLengths(const std::vector<ScheduleDim>& dims,
                                       const std::vector<GridDim>& grid,
                                       const std::vector<Halo>& halos) {
  for (size_t h = 0; h < halos.size(); ++h) {
    BlockWindows windows =
        HaloBlocks(dims, GridBelow(grid, halos, h), halos, h, kMostWindowLengths).Run();
    if (windows.lengths.size() > kMostWindowLengths) return halos[h].dim;
  }
  return std::nullopt;
}

Dims LongestWindows(const std::vector<ScheduleDim>& dims, const std::vector<GridDim>& grid,
                    const std::vector<Halo>& halos) {
  Dims out;
  if (!halos.empty()) {
    for (const BlockWindows& w : WindowsOfBlocks(dims, grid, halos)) out.push_back(w.longest());
    return out;
  }
  out.reserve(dims.size());
  for (const ScheduleDim& d : dims) out.push_back(d.extent);
  for (const GridDim& g : grid) {
    int64_t& window = out[static_cast<size_t>(g.dim)];
    window = std::min(window, g.tile);
  }
  return out;
}

}  // namespace fusion
