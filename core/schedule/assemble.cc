#include "core/schedule/assemble.h"

#include "core/base/contains.h"

namespace fusion {
namespace {

void Allocate(BufferId b, const LocalBuffers::Span& span, Block* block) {
  block->push_back(Stmt{AllocStmt{b}});
  if (!span.init.empty()) block->push_back(Stmt{InitStmt{{b}, span.init}});
}

// Nests [begin, end) of a section that are wrapped together, and the dims they are all cut along.
struct Run {
  size_t begin = 0;
  size_t end = 0;
  std::vector<DimId> common;

  bool IsWrapped() const { return end - begin > 1; }
  bool Holds(int nest) const {
    return nest >= static_cast<int>(begin) && nest < static_cast<int>(end);
  }
};

// The run of plain nests from `begin` that share rows; a product is alone.
Run RunFrom(size_t begin, const std::vector<NestCode>& nests) {
  Run alone{begin, begin + 1, {}};
  if (nests[begin].product) return alone;
  Run run{begin, begin, nests[begin].dims};
  for (; run.end < nests.size() && !nests[run.end].product; ++run.end) {
    std::vector<DimId> next;
    for (DimId d : run.common) {
      const NestCode& nest = nests[run.end];
      // What another row of the run would be read of is not there yet.
      bool apart = Contains(nest.reduced, d) || (run.end > begin && Contains(nest.moved, d));
      if (Contains(nest.dims, d) && !apart) next.push_back(d);
    }
    if (next.empty()) break;
    run.common = std::move(next);
  }
  return run.IsWrapped() ? run : alone;
}

// Loops over the rows of a run, one at a time; along the vectors of some nest one vector.
Block WrapIn(const std::vector<DimId>& common, const std::vector<DimId>& vectors,
             const Dims& windows, int64_t lanes, Block inside) {
  for (size_t i = common.size(); i-- > 0;) {
    DimId d = common[i];
    int64_t tile = Contains(vectors, d) ? lanes : 1;
    if (windows[static_cast<size_t>(d)] <= tile) continue;
    inside = LoopOver(d, tile, std::move(inside));
  }
  return inside;
}

}  // namespace

void Append(Block from, Block* to) {
  for (Stmt& s : from) to->push_back(std::move(s));
}

Block LoopOver(DimId dim, int64_t tile, Block body) {
  LoopStmt loop{.dim = dim, .tile = tile};
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
                      const Dims& windows, int64_t lanes) {
  Block block;
  for (size_t i = 0; i < nests.size();) {
    Run run = RunFrom(i, nests);
    Block inside;
    for (const auto& [b, span] : locals.spans()) {
      if (span.section != section || span.other_sections || !run.Holds(span.first)) continue;
      bool inner = run.IsWrapped() && run.Holds(span.last);
      Allocate(b, span, inner ? &inside : &block);
    }
    std::vector<DimId> vectors;
    for (; i < run.end; ++i) {
      vectors.push_back(nests[i].vector);
      Append(std::move(nests[i].code), &inside);
    }
    if (run.IsWrapped()) inside = WrapIn(run.common, vectors, windows, lanes, std::move(inside));
    Append(std::move(inside), &block);
  }
  return block;
}

}  // namespace fusion
