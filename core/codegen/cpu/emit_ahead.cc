#include <algorithm>
#include <functional>
#include <set>

#include "core/codegen/cpu/emitter.h"

// Prefetches. Memory is idle while a step of a loop multiplies, or reads again what it has read. So
// tensors that a step reads after a product (a mask, a residual), or for the second time, are
// prefetched for the next step.

namespace fusion {
namespace {

// Columns of fewer bytes stay in the nearest cache between runs.
constexpr int64_t kLeastBytesAhead = int64_t{32} << 10;

// A product in a loop over its columns, and how often one step of the loop computes it.
struct BlockProduct {
  const MmaStmt* mma = nullptr;
  int64_t times = 1;
};

}  // namespace

// Panels of columns are consecutive in memory. Block after block of rows multiplies one panel: all
// but the first find it in a private cache. Meanwhile the next panel is prefetched, a part of it by
// each block. `end`: end of the loop.
void CpuEmitter::FindColumnsAhead(const LoopStmt& loop, const std::string& end) {
  if (IsMember() || guard_) return;
  const bool follows =
      device_.threads == 1 && !segment_->grid.empty() && segment_->grid.back().dim == loop.dim;
  std::vector<BlockProduct> products;
  const std::function<void(const Block&, int64_t)> collect = [&](const Block& body, int64_t times) {
    for (const Stmt& stmt : body) {
      if (const auto* mma = std::get_if<MmaStmt>(&stmt.node); mma != nullptr) {
        if (mma->n == loop.dim) products.push_back({mma, times});
      } else if (const auto* inner = std::get_if<LoopStmt>(&stmt.node); inner != nullptr) {
        const int64_t tiles = (window(inner->dim).Longest() + inner->tile - 1) / inner->tile;
        if (inner->dim != loop.dim && inner->end < 0) collect(inner->body, times * tiles);
      }
    }
  };
  collect(loop.body, 1);
  for (const auto& [mma, times] : products) {
    const Buffer& b = buffer(mma->b.buffer);
    const BufferLayout& layout = b.layout;
    const int64_t bytes = DTypeBytes(b.dtype);
    const bool panels = b.level == Level::kGlobal && layout.blocked >= 0 &&
                        layout.block == loop.tile && StoredBytes(b) > kLeastBytesAhead;
    int64_t packs = 1;
    for (DimId d : mma->over) {
      const int64_t pack = d == mma->over.back() ? layout.pack : 1;
      packs *= (window(d).Longest() + pack - 1) / pack;
    }
    if (!panels || times < 2 || packs < 1) continue;
    const int64_t pack_bytes = layout.block * layout.pack * bytes;
    ColumnsAhead ahead{.name = StrCat("ahead_", b.name, "_", columns_ahead_.size())};
    ahead.pack_bytes = (pack_bytes + times - 1) / times;
    ahead.block_bytes = (pack_bytes * packs + times - 1) / times;
    const int64_t panel = StoredElements(b) / StoredDims(b)[0] * bytes;
    // The last panel of a task prefetches itself again, which is cheap, unless there is one thread
    // and the next task continues along the columns.
    const Window& columns = window(loop.dim);
    const std::string next =
        follows ? StrCat(panel)
                : StrCat("(", columns.begin, " + ", loop.tile, " < ", end, " ? ", panel, " : 0)");
    out_.Line("const char* ", ahead.name, " = (const char*)(", Address(mma->b), ") + ", next, ";");
    columns_ahead_[mma] = std::move(ahead);
  }
}

// Finds the loads to prefetch: of tensors larger than the nearest cache, in kernels whose params
// exceed every private cache.
void CpuEmitter::FindRowsAhead(const LoopStmt& loop) {
  if (IsMember() || guard_) return;
  int64_t cache = 0;
  for (const MemoryLevel& level : device_.levels) {
    if (!level.shared) cache = std::max(cache, level.bytes);
  }
  if (ParamBytes(s_) <= cache) return;
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
      const bool far = b.level == Level::kGlobal && StoredBytes(b) > device_.levels.front().bytes;
      if (!far || again.contains(a.buffer)) continue;
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

// Distance in elements from what a load of whole vectors reads to what the next step reads; 0: not
// prefetched.
int64_t CpuEmitter::RowsAhead(const Region& region, const ElementOp& load,
                              const Lanes& lanes) const {
  const auto found = ahead_.find(&load);
  if (found == ahead_.end() || region.vector < 0 || !lanes.count.empty()) return 0;
  return StepAlong(load.access[0], region.vector) == 1 ? found->second : 0;
}

}  // namespace fusion
