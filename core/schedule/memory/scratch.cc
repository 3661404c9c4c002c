#include "core/schedule/memory/scratch.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/schedule/ir/access.h"
#include "core/schedule/memory/memory.h"

namespace fusion {
namespace {

// The buffers a statement touches.
void Touched(const Stmt& stmt, std::vector<BufferId>* out) {
  auto add = [out](const Access& a) { out->push_back(a.buffer); };
  if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
    for (const Stmt& s : loop->body) Touched(s, out);
  } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
    if (branch->watched >= 0) out->push_back(branch->watched);
    for (const Stmt& s : branch->body) Touched(s, out);
  } else if (const auto* init = std::get_if<InitStmt>(&stmt.node)) {
    out->insert(out->end(), init->buffers.begin(), init->buffers.end());
  } else if (const auto* each = std::get_if<EachStmt>(&stmt.node)) {
    for (const ElementOp& e : each->ops) {
      for (const Access& a : e.access) add(a);
    }
  } else if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
    add(mma->a);
    add(mma->b);
    add(mma->c);
  } else if (const auto* copy = std::get_if<CopyStmt>(&stmt.node)) {
    add(copy->target);
    add(copy->source);
  } else if (const auto* merge = std::get_if<MergeStmt>(&stmt.node)) {
    for (const Access& a : merge->target) add(a);
    for (const Access& a : merge->source) add(a);
  } else if (const auto* call = std::get_if<CallStmt>(&stmt.node)) {
    out->insert(out->end(), call->inputs.begin(), call->inputs.end());
    out->insert(out->end(), call->outputs.begin(), call->outputs.end());
    out->insert(out->end(), call->scratch.begin(), call->scratch.end());
  }
}

class ScratchPlanner {
 public:
  ScratchPlanner(const Schedule& s, int64_t vector_bytes, int64_t alignment)
      : s_(s), vector_bytes_(vector_bytes), alignment_(alignment) {
    plan_.slots.resize(s.buffers.size());
  }

  ScratchPlan Run() {
    for (const Phase& phase : s_.phases) {
      for (const Segment& segment : phase.segments) {
        window_ = LongestWindows(s_.dims, segment.grid, segment.halos);
        live_.clear();
        Walk(segment.body);
      }
    }
    return std::move(plan_);
  }

 private:
  void Narrow(DimId d, int64_t tile) {
    int64_t& w = window_[static_cast<size_t>(d)];
    w = std::min(w, tile);
  }

  void Walk(const Block& block) {
    // Last statement of this block that touches each buffer.
    absl::flat_hash_map<BufferId, size_t> last;
    std::vector<BufferId> touched;
    for (size_t i = 0; i < block.size(); ++i) {
      touched.clear();
      Touched(block[i], &touched);
      for (BufferId b : touched) last[b] = i;
    }
    std::vector<BufferId> here;
    for (size_t i = 0; i < block.size(); ++i) {
      const Stmt& stmt = block[i];
      if (const auto* alloc = std::get_if<AllocStmt>(&stmt.node)) {
        if (s_.buffer(alloc->buffer).level == Level::kStaged) {
          Place(alloc->buffer);
          here.push_back(alloc->buffer);
        }
      } else if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
        int64_t saved = window_[static_cast<size_t>(loop->dim)];
        Narrow(loop->dim, loop->tile);
        Walk(loop->body);
        window_[static_cast<size_t>(loop->dim)] = saved;
      } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
        Walk(branch->body);
      }
      std::erase_if(here, [&](BufferId b) {
        auto it = last.find(b);
        bool dead = it == last.end() ? false : it->second <= i;
        if (dead) live_.erase(b);
        return dead;
      });
    }
    for (BufferId b : here) live_.erase(b);
  }

  void Layout(BufferId id) {
    const Buffer& b = s_.buffer(id);
    ScratchSlot& slot = plan_.slots[static_cast<size_t>(id)];
    slot.used = true;
    int64_t element = DTypeBytes(b.dtype);
    int64_t lanes = std::max<int64_t>(vector_bytes_ / element, 1);
    for (DimId d : b.dims)
      slot.extents.push_back(std::max<int64_t>(window_[static_cast<size_t>(d)], 1));
    if (b.layout.blocked >= 0) {
      auto blocked = static_cast<size_t>(b.layout.blocked);
      slot.strides = ElementStrides(b, slot.extents);
      int64_t blocks = (slot.extents[blocked] + b.layout.block - 1) / b.layout.block;
      slot.bytes = slot.strides[blocked] * blocks * element;
      return;
    }
    slot.strides.assign(b.dims.size(), 0);
    int64_t step = 1;
    for (size_t i = b.dims.size(); i-- > 0;) {
      slot.strides[i] = step;
      step *= slot.extents[i];
      if (i + 1 == b.dims.size() && b.dims.size() > 1) {
        step = (step + lanes - 1) / lanes * lanes;
        if (step * element % kAliasBytes == 0) step += lanes;
      }
    }
    // Whole vectors may be stored at the end of the last row.
    slot.bytes = (step + lanes - 1) / lanes * lanes * element;
  }

  void Place(BufferId id) {
    ScratchSlot& slot = plan_.slots[static_cast<size_t>(id)];
    slot = ScratchSlot();
    Layout(id);
    // First gap between live buffers that is large enough.
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (BufferId b : live_) {
      const ScratchSlot& other = plan_.slots[static_cast<size_t>(b)];
      taken.emplace_back(other.offset, other.offset + other.bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (at + slot.bytes <= begin) break;
      at = std::max(at, (end + alignment_ - 1) / alignment_ * alignment_);
    }
    slot.offset = at;
    live_.insert(id);
    plan_.bytes = std::max(plan_.bytes, at + slot.bytes);
  }

  const Schedule& s_;
  int64_t vector_bytes_;
  int64_t alignment_;
  ScratchPlan plan_;
  Dims window_;
  std::set<BufferId> live_;
};

}  // namespace

ScratchPlan PlanScratch(const Schedule& schedule, int64_t vector_bytes, int64_t alignment) {
  return ScratchPlanner(schedule, vector_bytes, alignment).Run();
}

WorkspacePlan PlanWorkspace(const Schedule& schedule, int64_t alignment) {
  std::map<BufferId, MemoryBlock> blocks;
  for (size_t p = 0; p < schedule.phases.size(); ++p) {
    std::vector<BufferId> touched;
    for (const Segment& segment : schedule.phases[p].segments) {
      for (const Stmt& stmt : segment.body) Touched(stmt, &touched);
    }
    for (BufferId b : touched) {
      BufferId memory = schedule.MemoryOf(b);
      if (schedule.buffer(memory).level != Level::kWorkspace) continue;
      auto now = static_cast<int>(p);
      int64_t bytes = StoredBytes(schedule.buffer(memory));
      blocks.try_emplace(memory, MemoryBlock{.bytes = bytes, .first = now}).first->second.last =
          now;
    }
  }
  std::vector<MemoryBlock> list;
  for (const auto& [b, block] : blocks) list.push_back(block);
  MemoryPlan memory = PlanMemory(list, alignment);
  WorkspacePlan plan{.offsets = std::vector<int64_t>(schedule.buffers.size(), 0),
                     .bytes = memory.bytes};
  size_t i = 0;
  for (const auto& [b, block] : blocks) plan.offsets[static_cast<size_t>(b)] = memory.offsets[i++];
  return plan;
}

}  // namespace fusion
