#include "core/schedule/ir/aliases.h"

#include <algorithm>
#include <vector>

#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

// A region and its segment.
struct Place {
  const EachStmt* each = nullptr;
  const Segment* segment = nullptr;
};

// Where the buffers of a schedule are accessed.
struct Accesses {
  std::vector<std::vector<Place>> regions;  // by buffer
  std::vector<bool> elsewhere;              // by buffer: accessed by other statements
};

void Collect(const Block& block, const Segment& segment, Accesses* out) {
  auto elsewhere = [out](const std::vector<Access>& accesses) {
    for (const Access& a : accesses) out->elsewhere[static_cast<size_t>(a.buffer)] = true;
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
      for (const auto* list : {&call->inputs, &call->outputs}) {
        for (BufferId b : *list) out->elsewhere[static_cast<size_t>(b)] = true;
      }
    } else if (const auto* each = std::get_if<EachStmt>(&stmt.node)) {
      for (const ElementOp& e : each->ops) {
        for (const Access& a : e.access)
          out->regions[static_cast<size_t>(a.buffer)].push_back({each, &segment});
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
  Accesses accesses{.regions = std::vector<std::vector<Place>>(schedule.buffers.size()),
                    .elsewhere = std::vector<bool>(schedule.buffers.size(), false)};
  for (const Phase& phase : schedule.phases) {
    for (const Segment& segment : phase.segments) Collect(segment.body, segment, &accesses);
  }
  std::vector<std::pair<BufferId, BufferId>> pairs;
  // Inputs that are read in one region only.
  auto free = [&](BufferId i) {
    const std::vector<Place>& reads = accesses.regions[static_cast<size_t>(i)];
    return !accesses.elsewhere[static_cast<size_t>(i)] && !reads.empty() &&
           std::all_of(reads.begin(), reads.end(),
                       [&](const Place& p) { return p.each == reads[0].each; });
  };
  std::vector<BufferId> inputs;
  for (BufferId i = 0; i < schedule.params; ++i) {
    if (schedule.buffer(i).kind == ParamKind::kInput && free(i)) inputs.push_back(i);
  }
  for (BufferId o = 0; o < schedule.params; ++o) {
    const std::vector<Place>& writes = accesses.regions[static_cast<size_t>(o)];
    if (schedule.buffer(o).kind != ParamKind::kOutput || writes.size() != 1 ||
        accesses.elsewhere[static_cast<size_t>(o)]) {
      continue;
    }
    for (BufferId i : inputs) {
      bool here = accesses.regions[static_cast<size_t>(i)][0].each == writes[0].each;
      if (here && SameForm(schedule.buffer(o), schedule.buffer(i)) &&
          SameElement(writes[0], o, i)) {
        pairs.emplace_back(o, i);
        std::erase(inputs, i);
        break;
      }
    }
  }
  return pairs;
}

}  // namespace fusion
