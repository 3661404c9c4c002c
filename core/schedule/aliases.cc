#include "core/schedule/aliases.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/schedule/access.h"

namespace fusion {
namespace {

// A region and the grid its blocks are cut by.
struct Place {
  const EachStmt* each = nullptr;
  const Segment* segment = nullptr;
};

// Where the buffers of a schedule are accessed.
struct Accesses {
  std::map<BufferId, std::vector<Place>> regions;
  std::set<BufferId> elsewhere;  // accessed by other statements
};

void Collect(const Block& block, const Segment& segment, Accesses* out) {
  auto elsewhere = [out](const std::vector<Access>& accesses) {
    for (const Access& a : accesses) out->elsewhere.insert(a.buffer);
  };
  for (const Stmt& stmt : block) {
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
      Collect(loop->body, segment, out);
    } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
      Collect(branch->body, segment, out);
    } else if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
      elsewhere({mma->a, mma->b, mma->c});
    } else if (const auto* copy = std::get_if<CopyStmt>(&stmt.node)) {
      elsewhere({copy->source, copy->target});
    } else if (const auto* merge = std::get_if<MergeStmt>(&stmt.node)) {
      elsewhere(merge->source);
      elsewhere(merge->target);
    } else if (const auto* call = std::get_if<CallStmt>(&stmt.node)) {
      out->elsewhere.insert(call->inputs.begin(), call->inputs.end());
      out->elsewhere.insert(call->outputs.begin(), call->outputs.end());
    } else if (const auto* each = std::get_if<EachStmt>(&stmt.node)) {
      for (const ElementOp& e : each->ops) {
        for (const Access& a : e.access) out->regions[a.buffer].push_back({each, &segment});
      }
    }
  }
}

// True if `output` is stored at the very element that `input` is read at, and every block has
// elements of its own.
bool SameElement(const Place& place, BufferId output, BufferId input) {
  const Access* store = nullptr;
  for (const ElementOp& e : place.each->ops) {
    for (const Access& a : e.access) {
      if (a.buffer == output) store = &a;
    }
  }
  if (store == nullptr || !store->guards.empty()) return false;
  for (const ElementOp& e : place.each->ops) {
    for (const Access& a : e.access) {
      if (a.buffer == input && (!(a.index == store->index) || !a.guards.empty())) return false;
    }
  }
  const std::vector<GridDim>& grid = place.segment->grid;
  return std::all_of(grid.begin(), grid.end(),
                     [&](const GridDim& g) { return Names(store->index, g.dim); });
}

bool SameForm(const Buffer& output, const Buffer& input) {
  return output.kind == ParamKind::kOutput && input.kind == ParamKind::kInput &&
         input.dtype == output.dtype && input.shape == output.shape &&
         input.layout == output.layout;
}

}  // namespace

std::vector<std::pair<BufferId, BufferId>> FindAliases(const Schedule& schedule) {
  Accesses accesses;
  for (const Phase& phase : schedule.phases) {
    for (const Segment& segment : phase.segments) Collect(segment.body, segment, &accesses);
  }
  std::vector<std::pair<BufferId, BufferId>> pairs;
  std::set<BufferId> taken;
  for (BufferId o = 0; o < schedule.params; ++o) {
    const std::vector<Place>& writes = accesses.regions[o];
    if (writes.size() != 1 || accesses.elsewhere.count(o) != 0) continue;
    for (BufferId i = 0; i < schedule.params; ++i) {
      const std::vector<Place>& reads = accesses.regions[i];
      bool free = accesses.elsewhere.count(i) == 0 && taken.count(i) == 0;
      bool here = !reads.empty() && std::all_of(reads.begin(), reads.end(), [&](const Place& p) {
        return p.each == writes[0].each;
      });
      if (free && here && SameForm(schedule.buffer(o), schedule.buffer(i)) &&
          SameElement(writes[0], o, i)) {
        pairs.emplace_back(o, i);
        taken.insert(i);
        break;
      }
    }
  }
  return pairs;
}

}  // namespace fusion
