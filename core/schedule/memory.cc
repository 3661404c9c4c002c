#include "core/schedule/memory.h"

#include <algorithm>
#include <numeric>

namespace fusion {
namespace {

struct Area {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  int64_t offset = -1;
};

}  // namespace

MemoryPlan PlanMemory(const std::vector<MemoryBlock>& blocks, int64_t alignment) {
  // Chains of blocks in place of one another are one area.
  std::vector<int> area_of(blocks.size(), -1);
  std::vector<Area> areas;
  std::vector<bool> replaced(blocks.size(), false);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const MemoryBlock& b = blocks[i];
    int from = b.in_place_of;
    bool joins = from >= 0 && static_cast<size_t>(from) < i &&
                 !replaced[static_cast<size_t>(from)] &&
                 blocks[static_cast<size_t>(from)].last == b.first &&
                 blocks[static_cast<size_t>(from)].bytes == b.bytes;
    if (joins) {
      replaced[static_cast<size_t>(from)] = true;
      area_of[i] = area_of[static_cast<size_t>(from)];
      areas[static_cast<size_t>(area_of[i])].last = b.last;
      continue;
    }
    area_of[i] = static_cast<int>(areas.size());
    areas.push_back({(b.bytes + alignment - 1) / alignment * alignment, b.first, b.last});
  }
  std::vector<size_t> order(areas.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return areas[a].bytes > areas[b].bytes; });
  MemoryPlan plan;
  std::vector<const Area*> placed;  // by offset, then end
  auto before = [](const Area* a, const Area* b) {
    return std::pair(a->offset, a->offset + a->bytes) < std::pair(b->offset, b->offset + b->bytes);
  };
  for (size_t i : order) {
    Area& area = areas[i];
    int64_t at = 0;
    for (const Area* other : placed) {
      if (other->first > area.last || area.first > other->last) continue;
      if (at + area.bytes <= other->offset) break;
      at = std::max(at, other->offset + other->bytes);
    }
    area.offset = at;
    plan.bytes = std::max(plan.bytes, at + area.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &area, before), &area);
  }
  for (int a : area_of) plan.offsets.push_back(areas[static_cast<size_t>(a)].offset);
  return plan;
}

}  // namespace fusion
