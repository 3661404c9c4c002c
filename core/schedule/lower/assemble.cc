#include "core/schedule/lower/assemble.h"

#include <algorithm>
#include <set>
#include <variant>

#include "core/base/contains.h"

namespace fusion {
namespace {

void Allocate(BufferId b, const LocalBuffers::Span& span, Block* block) {
  block->push_back(Stmt{AllocStmt{b}});
  if (!span.init.empty()) block->push_back(Stmt{InitStmt{{b}, span.init}});
}

// Nests [begin, end) of a section in common loops, and the dims along which all are tiled.
struct Run {
  size_t begin = 0;
  size_t end = 0;
  std::vector<DimId> common;

  bool IsWrapped() const { return end - begin > 1; }
  bool Holds(int nest) const {
    return nest >= static_cast<int>(begin) && nest < static_cast<int>(end);
  }
};

// The run of element-wise nests from `begin` that share rows. Products, and nests that look up
// places, are alone.
Run RunFrom(size_t begin, const std::vector<NestCode>& nests) {
  Run alone{begin, begin + 1, {}};
  auto is_alone = [&](size_t nest) { return nests[nest].product || nests[nest].placed; };
  if (is_alone(begin)) return alone;
  Run run{begin, begin, nests[begin].dims};
  for (; run.end < nests.size() && !is_alone(run.end); ++run.end) {
    std::vector<DimId> next;
    for (DimId d : run.common) {
      const NestCode& nest = nests[run.end];
      // Values of another row of the run are not computed yet.
      bool apart = Contains(nest.reduced, d) || (run.end > begin && Contains(nest.moved, d));
      if (Contains(nest.dims, d) && !apart) next.push_back(d);
    }
    if (next.empty()) break;
    run.common = std::move(next);
  }
  return run.IsWrapped() ? run : alone;
}

// Elements of short rows that are processed together, so that one row does not wait for the fold of
// another. Measured on Zen 4, 2026-11: softmax with rows of 128, 139 us one by one, 99 us together.
// These elements fit in the nearest cache.
constexpr double kElementsTogether = 1024;

// True if some nest of a run has its vectors along `d`.
bool HasVectors(DimId d, const std::vector<NestCode>& nests, const Run& run) {
  return std::any_of(nests.begin() + static_cast<std::ptrdiff_t>(run.begin),
                     nests.begin() + static_cast<std::ptrdiff_t>(run.end),
                     [d](const NestCode& nest) { return nest.vector == d; });
}

// Number of f32 elements of rows that a run walks more than once and that still are in the nearest
// cache the second time. Measured on an Intel processor with 48 KiB of it, 2026-11: LayerNorm of
// 512 rows of 768, 182 us with 16 rows at a time, 160 with 2; of 8192 rows of 4096, 41 and 32 ms.
constexpr double kElementsNear = 8192;

// True if every nest with vectors along `row` has one element for each row (a statistic of the
// row).
bool OnlyStatistics(DimId row, const std::vector<NestCode>& nests, const Run& run) {
  return std::all_of(
      nests.begin() + static_cast<std::ptrdiff_t>(run.begin),
      nests.begin() + static_cast<std::ptrdiff_t>(run.end), [&](const NestCode& nest) {
        return nest.vector != row || std::all_of(nest.dims.begin(), nest.dims.end(),
                                                 [&](DimId d) { return Contains(run.common, d); });
      });
}

// Elements of all buffers that a run walks for one row.
double ElementsOfRow(DimId row, const std::vector<NestCode>& nests, const Run& run,
                     const Dims& windows) {
  std::set<BufferId> walked;
  double sum = 0;
  auto walk = [&](const Access& access) {
    bool follows = false;
    std::set<DimId> along;
    for (const IndexExpr& e : access.index) {
      for (const IndexExpr::Term& t : e.terms()) {
        follows |= t.axis == row;
        if (!Contains(run.common, t.axis)) along.insert(t.axis);
      }
    }
    if (!follows || along.empty() || !walked.insert(access.buffer).second) return;
    double elements = 1;
    for (DimId d : along) elements *= static_cast<double>(windows[static_cast<size_t>(d)]);
    sum += elements;
  };
  for (size_t i = run.begin; i < run.end; ++i) {
    for (const Stmt& stmt : nests[i].code) {
      const auto* each = std::get_if<EachStmt>(&stmt.node);
      if (each == nullptr) continue;
      for (const ElementOp& op : each->ops) {
        for (const Access& access : op.access) walk(access);
      }
    }
  }
  return sum;
}

// Tile lengths of a run's common dims: one vector along the vector dim of a nest, else one row.
// With `together` as many long rows as stay in the nearest cache, and several short ones along the
// last other dim.
std::vector<int64_t> TilesOf(const Run& run, const std::vector<NestCode>& nests,
                             const Dims& windows, int64_t lanes, bool together) {
  std::vector<int64_t> tiles(run.common.size(), 1);
  size_t last = run.common.size();
  double vectors = 1;
  for (size_t c = 0; c < run.common.size(); ++c) {
    if (HasVectors(run.common[c], nests, run)) {
      tiles[c] = lanes;
      if (together && OnlyStatistics(run.common[c], nests, run)) {
        const double row = ElementsOfRow(run.common[c], nests, run, windows);
        while (tiles[c] > 1 && static_cast<double>(tiles[c]) * row > kElementsNear) tiles[c] /= 2;
      }
      vectors *= static_cast<double>(tiles[c]);
    } else {
      last = c;
    }
  }
  if (!together || last == run.common.size()) return tiles;
  double most = 1;  // elements that a nest has for one row
  for (size_t i = run.begin; i < run.end; ++i) {
    double points = vectors;
    for (DimId d : nests[i].dims) {
      const bool inside = !Contains(run.common, d);
      if (inside) points *= static_cast<double>(windows[static_cast<size_t>(d)]);
    }
    most = std::max(most, points);
  }
  tiles[last] = std::clamp<int64_t>(static_cast<int64_t>(kElementsTogether / most), 1,
                                    std::max<int64_t>(lanes / 2, 1));
  return tiles;
}

// Loops over the rows of a run.
Block WrapIn(const Run& run, const std::vector<int64_t>& tiles, const Dims& windows, Block inside) {
  for (size_t c = run.common.size(); c-- > 0;) {
    DimId d = run.common[c];
    if (windows[static_cast<size_t>(d)] <= tiles[c]) continue;
    inside = LoopOver(d, tiles[c], std::move(inside));
  }
  return inside;
}

}  // namespace

void Append(Block from, Block* to) {
  for (Stmt& s : from) to->push_back(std::move(s));
}

Block LoopOver(DimId dim, int64_t tile, Block body, int64_t begin, int64_t end) {
  LoopStmt loop{.dim = dim, .tile = tile, .begin = begin, .end = end};
  loop.body = std::move(body);
  Block block;
  block.push_back(Stmt{std::move(loop)});
  return block;
}

Block AllocateShared(const LocalBuffers& locals) {
  Block block;
  for (const auto& [b, span] : locals.spans()) {
    if (span.other_sections) Allocate(b, span, &block);
  }
  return block;
}

Block AssembleSection(int section, std::vector<NestCode> nests, const LocalBuffers& locals,
                      const Dims& windows, int64_t lanes, bool together) {
  Block block;
  for (size_t i = 0; i < nests.size();) {
    Run run = RunFrom(i, nests);
    Block inside;
    for (const auto& [b, span] : locals.spans()) {
      if (span.section != section || span.other_sections || !run.Holds(span.first)) continue;
      bool inner = run.IsWrapped() && run.Holds(span.last);
      Allocate(b, span, inner ? &inside : &block);
    }
    const std::vector<int64_t> tiles = TilesOf(run, nests, windows, lanes, together);
    for (; i < run.end; ++i) {
      NestCode& nest = nests[i];
      if (nest.blocked >= 0) {
        nest.code = LoopOver(nest.blocked, nest.block, std::move(nest.code));
      }
      Append(std::move(nest.code), &inside);
    }
    Append(WrapIn(run, tiles, windows, std::move(inside)), &block);
  }
  return block;
}

}  // namespace fusion
