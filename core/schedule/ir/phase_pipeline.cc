#include "core/schedule/ir/phase_pipeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

// The accesses of a phase to one memory.
struct Touches {
  std::vector<Access> accesses;
  bool written = false;
};

using Memories = std::map<BufferId, Touches>;

Memories MemoriesOf(const Schedule& s, const Block& block) {
  Memories memories;
  ForEachAccess(block, [&](const Access& a, bool writes) {
    if (s.buffer(a.buffer).IsLocal()) return;
    Touches& touches = memories[s.MemoryOf(a.buffer)];
    touches.accesses.push_back(a);
    touches.written = touches.written || writes;
  });
  return memories;
}

// The part of a memory that an access touches in a slice.
struct Part {
  // True: the slices divide the memory, under any shape, into equal consecutive parts. False: they
  // divide dim `position` of `buffer`.
  bool whole_rows = false;
  BufferId buffer = 0;
  size_t position = 0;
  auto operator<=>(const Part&) const = default;
};

// The parts that an access is confined to in a slice of `dim`; none if it may leave them.
std::set<Part> PartsOf(const Schedule& s, const Access& access, DimId dim) {
  const Buffer& b = s.buffer(access.buffer);
  std::set<Part> parts;
  bool outermost = IsDense(b);
  for (size_t p = 0; p < access.index.size(); ++p) {
    if (access.index[p] == IndexExpr::Axis(dim)) {
      parts.insert({.buffer = access.buffer, .position = p});
      if (outermost && b.shape[p] == s.dim(dim).extent) parts.insert({.whole_rows = true});
    }
    outermost = outermost && b.shape[p] == 1;
  }
  return parts;
}

// The parts common to all accesses, for slices of these dims, which are sliced together. Dims
// longer than the shortest one divide whole rows only.
std::set<Part> CommonParts(const Schedule& s, const std::vector<Access>& accesses,
                           const std::set<DimId>& dims) {
  int64_t shortest = INT64_MAX;
  for (DimId d : dims) shortest = std::min(shortest, s.dim(d).extent);
  std::set<Part> common;
  for (size_t a = 0; a < accesses.size(); ++a) {
    std::set<Part> parts;
    for (DimId d : dims) {
      const bool same = s.dim(d).extent == shortest;
      for (const Part& part : PartsOf(s, accesses[a], d)) {
        if (same || part.whole_rows) parts.insert(part);
      }
    }
    if (a == 0) common = parts;
    std::erase_if(common, [&](const Part& p) { return parts.count(p) == 0; });
  }
  return common;
}

bool Mentions(const Block& block, DimId d);

bool Mentions(const Stmt& stmt, DimId d) {
  if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
    return loop->dim == d || Mentions(loop->body, d);
  }
  if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
    return branch->first == d || Names(branch->somewhere, d) || Mentions(branch->body, d);
  }
  if (const auto* each = std::get_if<EachStmt>(&stmt.node)) {
    return Contains(each->dims, d) || std::any_of(each->ops.begin(), each->ops.end(),
                                                  [d](const auto& op) { return op.axis == d; });
  }
  if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
    return mma->m == d || mma->n == d || Contains(mma->over, d);
  }
  if (const auto* copy = std::get_if<CopyStmt>(&stmt.node)) return Contains(copy->dims, d);
  if (const auto* merge = std::get_if<MergeStmt>(&stmt.node)) return Contains(merge->dims, d);
  return false;
}

// True if the statements do anything along a dim.
bool Mentions(const Block& block, DimId d) {
  bool named =
      std::any_of(block.begin(), block.end(), [d](const Stmt& stmt) { return Mentions(stmt, d); });
  ForEachAccess(block, [&](const Access& a, bool) { named = named || Names(a.index, d); });
  return named;
}

bool HasCall(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Stmt& stmt) {
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) return HasCall(loop->body);
    if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) return HasCall(branch->body);
    return std::holds_alternative<CallStmt>(stmt.node);
  });
}

// The range that a window of `dim` covers of a dim `times` as long.
std::vector<IndexExpr> ReachOfSlice(DimId dim, int64_t times) {
  std::vector<IndexExpr> reached = {IndexExpr::Axis(dim, times)};
  if (times > 1) reached.push_back(IndexExpr::Axis(dim, times) + (times - 1));
  return reached;
}

// Follows grid dims through phases.
class SliceFinder {
 public:
  SliceFinder(const Schedule& s, int first, int phases) : s_(s) {
    for (int p = first; p < first + phases; ++p) {
      phases_.push_back(&s.phases[static_cast<size_t>(p)]);
    }
  }

  absl::StatusOr<std::vector<PipelineSlice>> Run() {
    for (const Phase* phase : phases_) {
      const Segment& segment = phase->segments[0];
      if (phase->segments.size() != 1 || HasCall(segment.body)) {
        return Refused("a phase of several parts side by side, or of an opaque op");
      }
      if (!segment.halos.empty()) return Refused("blocks of a phase overlap");
      memories_.push_back(MemoriesOf(s_, segment.body));
    }
    std::vector<PipelineSlice> found;
    for (const GridDim& g : Segment0(0).grid) {
      PipelineSlice slice{.dims = {g.dim}};
      if (Follow(found, &slice)) found.push_back(std::move(slice));
    }
    if (!found.empty()) return found;
    if (!why_.empty()) return Refused(why_);
    std::vector<std::string> grids;
    for (size_t p = 0; p < phases_.size(); ++p) grids.push_back(GridText(p));
    return Refused(StrCat("the phases are cut along ", StrJoin(grids, "; "),
                          ": no dim of each whose lengths divide each other"));
  }

 private:
  const Segment& Segment0(size_t phase) const { return phases_[phase]->segments[0]; }
  int64_t extent(DimId d) const { return s_.dim(d).extent; }

  // "s0_m of 128, s0_n of 768"
  std::string GridText(size_t phase) const {
    std::string text = StrJoin(Segment0(phase).grid, ", ", [this](const GridDim& g) {
      return StrCat(s_.dim(g.dim).name, " of ", extent(g.dim));
    });
    return text.empty() ? "nothing, as 1 block" : text;
  }

  static absl::Status Refused(std::string_view why) {
    return RefusalStatus(RefusalCode::kPipeline, why);
  }

  // Continues a slice of the first phase through the others.
  bool Follow(const std::vector<PipelineSlice>& taken, PipelineSlice* slice) {
    for (size_t p = 1; p < phases_.size(); ++p) {
      const std::vector<GridDim>& grid = Segment0(p).grid;
      auto next = std::find_if(grid.begin(), grid.end(), [&](const GridDim& g) {
        bool free = std::none_of(taken.begin(), taken.end(),
                                 [&](const PipelineSlice& t) { return t.dims[p] == g.dim; });
        return free && Fits(*slice, p, g.dim);
      });
      if (next == grid.end()) return false;
      slice->dims.push_back(next->dim);
    }
    return SetTile(slice) && HaveTheirOwn(*slice);
  }

  // True if dim `dim` of phase `p` continues a slice of the phases before: the extents divide each
  // other, and memory that one of these phases writes and another one accesses is accessed in the
  // same slices.
  bool Fits(const PipelineSlice& slice, size_t p, DimId dim) {
    const int64_t shortest = extent(slice.Shortest(s_));
    if (shortest == 0 || extent(dim) == 0) return false;
    if (extent(dim) % shortest != 0 && shortest % extent(dim) != 0) return false;
    for (const auto& [memory, here] : memories_[p]) {
      for (size_t before = 0; before < p; ++before) {
        auto there = memories_[before].find(memory);
        if (there == memories_[before].end()) continue;
        if (!here.written && !there->second.written) continue;
        std::vector<Access> both = there->second.accesses;
        both.insert(both.end(), here.accesses.begin(), here.accesses.end());
        if (!CommonParts(s_, both, {slice.dims[before], dim}).empty()) continue;
        why_ = StrCat(s_.buffer(memory).name, " is not touched in slices of ",
                      s_.dim(slice.dims[before]).name, " and ", s_.dim(dim).name);
        return false;
      }
    }
    return true;
  }

  // Sets the shortest slice that is whole tiles of all phases; false if it covers the whole dim.
  bool SetTile(PipelineSlice* slice) {
    const DimId shortest = slice->Shortest(s_);
    slice->tile = 1;
    for (size_t p = 0; p < phases_.size(); ++p) {
      const int64_t times = extent(slice->dims[p]) / extent(shortest);
      for (const GridDim& g : Segment0(p).grid) {
        if (g.dim != slice->dims[p]) continue;
        slice->tile = std::lcm(slice->tile, g.tile / std::gcd(g.tile, times));
        if (slice->tile >= extent(shortest)) {
          why_ =
              StrCat("whole tiles of all phases are ", slice->tile, " of ", s_.dim(shortest).name,
                     ", which is ", extent(shortest), ": there is one slice");
          return false;
        }
      }
    }
    return true;
  }

  // True if no phase does anything along the dim of another one.
  bool HaveTheirOwn(const PipelineSlice& slice) {
    for (size_t p = 0; p < phases_.size(); ++p) {
      for (DimId d : slice.dims) {
        if (d == slice.dims[p] || !Mentions(Segment0(p).body, d)) continue;
        why_ = StrCat(s_.dim(d).name, " is another dim of a phase that is cut along ",
                      s_.dim(slice.dims[p]).name);
        return false;
      }
    }
    return true;
  }

  const Schedule& s_;
  std::vector<const Phase*> phases_;
  std::vector<Memories> memories_;  // by phase
  std::string why_;                 // the last dim that was tried does not do
};

// The dims that follow slices of `dim` in the blocks of a segment, itself included.
std::set<DimId> Following(const Schedule& s, const Segment& segment, DimId dim) {
  std::set<DimId> dims = {dim};
  for (const Halo& h : segment.halos) {
    const int64_t times = s.dim(h.dim).extent / std::max<int64_t>(s.dim(dim).extent, 1);
    if (h.reached == ReachOfSlice(dim, times)) dims.insert(h.dim);
  }
  return dims;
}

}  // namespace

DimId PipelineSlice::Shortest(const Schedule& schedule) const {
  return *std::min_element(dims.begin(), dims.end(), [&](DimId a, DimId b) {
    return schedule.dim(a).extent < schedule.dim(b).extent;
  });
}

absl::StatusOr<std::vector<PipelineSlice>> FindSlices(const Schedule& schedule, int first,
                                                      int phases) {
  return SliceFinder(schedule, first, phases).Run();
}

Schedule RunAsPipeline(const Schedule& schedule, const PhasePipeline& pipeline) {
  Schedule out = schedule;
  Segment merged;
  for (const PipelineSlice& slice : pipeline.slices) {
    const DimId shortest = slice.Shortest(schedule);
    merged.grid.push_back({shortest, slice.tile});
    for (DimId d : slice.dims) {
      bool known = d == shortest || std::any_of(merged.halos.begin(), merged.halos.end(),
                                                [d](const Halo& h) { return h.dim == d; });
      if (known) continue;
      const int64_t times = schedule.dim(d).extent / schedule.dim(shortest).extent;
      merged.halos.push_back({.dim = d, .reached = ReachOfSlice(shortest, times)});
    }
  }
  auto first = out.phases.begin() + pipeline.first;
  for (auto phase = first; phase != first + pipeline.phases; ++phase) {
    Segment& segment = phase->segments[0];
    Block body = std::move(segment.body);
    for (auto g = segment.grid.rbegin(); g != segment.grid.rend(); ++g) {
      LoopStmt loop{.dim = g->dim, .tile = g->tile, .blocks = true};
      loop.body = std::move(body);
      body = {};
      body.push_back({std::move(loop)});
    }
    merged.body.push_back(std::move(body[0]));
  }
  first->segments = {std::move(merged)};
  out.phases.erase(first + 1, first + pipeline.phases);
  return out;
}

std::vector<Stage> StagesOf(const Segment& segment) {
  auto blocks_of = [](const Block& block) {
    const auto* loop = block.size() == 1 ? std::get_if<LoopStmt>(&block[0].node) : nullptr;
    return loop != nullptr && loop->blocks ? loop : nullptr;
  };
  std::vector<Stage> stages;
  for (const Stmt& stmt : segment.body) {
    const auto* loop = std::get_if<LoopStmt>(&stmt.node);
    if (loop == nullptr || !loop->blocks) return {{.loops = {}, .body = &segment.body}};
    Stage& stage = stages.emplace_back();
    for (; loop != nullptr; loop = blocks_of(*stage.body)) {
      stage.loops.push_back({loop->dim, loop->tile});
      stage.body = &loop->body;
    }
  }
  if (stages.empty()) stages.push_back({.loops = {}, .body = &segment.body});
  return stages;
}

int CountPhases(const Schedule& schedule) {
  size_t count = 0;
  for (const Phase& phase : schedule.phases) {
    size_t most = 0;
    for (const Segment& segment : phase.segments) most = std::max(most, StagesOf(segment).size());
    count += most;
  }
  return static_cast<int>(count);
}

bool KeepsToItsBlock(const Schedule& schedule, const Phase& phase, BufferId memory) {
  const Segment* where = nullptr;
  Touches all;
  for (const Segment& segment : phase.segments) {
    Memories memories = MemoriesOf(schedule, segment.body);
    auto touches = memories.find(memory);
    if (touches == memories.end()) continue;
    if (where != nullptr) return false;
    where = &segment;
    all = std::move(touches->second);
  }
  if (where == nullptr) return true;
  return std::all_of(where->grid.begin(), where->grid.end(), [&](const GridDim& g) {
    if (g.tile >= schedule.dim(g.dim).extent) return true;
    const std::set<DimId> dims = Following(schedule, *where, g.dim);
    return !CommonParts(schedule, all.accesses, dims).empty();
  });
}

}  // namespace fusion
