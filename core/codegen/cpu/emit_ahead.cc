#include <algorithm>
#include <set>

#include "core/codegen/cpu/emitter.h"

// Memory waits while a step of a loop multiplies, or reads again what it has read: what it reads
// behind a product (a mask, a residual), or for the second time, is then asked for of the next
// step.

namespace fusion {

// Notes the loads of tensors beyond the private caches for which that is so.
void CpuEmitter::FindRowsAhead(const LoopStmt& loop) {
  if (IsMember() || guard_) return;
  int64_t cache = 0;
  for (const MemoryLevel& level : device_.levels) {
    if (!level.shared) cache = std::max(cache, level.bytes);
  }
  std::set<BufferId> read;
  std::set<BufferId> again;
  bool multiplied = false;
  for (const Stmt& stmt : loop.body) {
    multiplied |= std::holds_alternative<MmaStmt>(stmt.node);
    const auto* each = std::get_if<EachStmt>(&stmt.node);
    if (each == nullptr) continue;
    std::set<BufferId> here;
    for (const ElementOp& op : each->ops) {
      if (op.kind != ElementOp::kLoad || !op.access[0].guards.empty()) continue;
      const Access& a = op.access[0];
      const Buffer& b = buffer(a.buffer);
      const int64_t bytes = StoredElements(b) * DTypeBytes(b.dtype);
      if (b.level != Level::kGlobal || bytes <= cache || again.contains(a.buffer)) continue;
      const int64_t step = StepAlong(a, loop.dim) * loop.tile;
      if (step <= 0) continue;
      if (multiplied || read.contains(a.buffer)) {
        ahead_[&op] = step;
        again.insert(a.buffer);
      } else {
        here.insert(a.buffer);
      }
    }
    read.merge(here);
  }
}

// How far behind what a load of whole vectors reads the next step does; 0: that is not asked for.
int64_t CpuEmitter::RowsAhead(const Region& region, const ElementOp& load,
                              const Lanes& lanes) const {
  const auto found = ahead_.find(&load);
  if (found == ahead_.end() || region.vector < 0 || !lanes.count.empty()) return 0;
  return StepAlong(load.access[0], region.vector) == 1 ? found->second : 0;
}

}  // namespace fusion
