#include "core/schedule/memory/memory.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace fusion {
namespace {

struct Area {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  int64_t offset = -1;
  int64_t seen_by = -1;  // of Timeline::AliveWith: its last call that came by
};

// The placed areas, in a binary tree over the steps; an area is stored at the fewest nodes that
// cover its lifetime. This finds overlapping areas without a scan of all, which for the tensors of
// a large graph would take longer than the rest of planning.
class Timeline {
 public:
  explicit Timeline(const std::vector<Area>& areas) {
    for (const Area& area : areas) {
      steps_.push_back(area.first);
      steps_.push_back(area.last);
    }
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    leaves_ = std::bit_ceil(std::max<size_t>(steps_.size(), 1));
    nodes_.resize(2 * leaves_);
  }

  void Add(Area* area) { Add(area, Position(area->first), Position(area->last), 1, 0, leaves_); }

  // The areas alive at some step of `area`, each once, by offset, then end.
  const std::vector<const Area*>& AliveWith(const Area& area) {
    ++calls_;
    found_.clear();
    nodes_found_ = 0;
    Find(Position(area.first), Position(area.last), 1, 0, leaves_);
    if (nodes_found_ > 1) std::sort(found_.begin(), found_.end(), Before);
    return found_;
  }

 private:
  struct Node {
    std::vector<Area*> areas;  // by offset, then end
    bool any_below = false;
  };

  size_t Position(int step) const {
    return static_cast<size_t>(std::lower_bound(steps_.begin(), steps_.end(), step) -
                               steps_.begin());
  }

  // Stores `area` for those of the steps first..last that are below `node`, which covers begin..end
  // - 1.
  void Add(Area* area, size_t first, size_t last, size_t node, size_t begin, size_t end) {
    if (first >= end || last < begin) return;
    if (first <= begin && end - 1 <= last) {
      std::vector<Area*>& areas = nodes_[node].areas;
      areas.insert(std::upper_bound(areas.begin(), areas.end(), area, Before), area);
      return;
    }
    nodes_[node].any_below = true;
    size_t middle = begin + (end - begin) / 2;
    Add(area, first, last, 2 * node, begin, middle);
    Add(area, first, last, 2 * node + 1, middle, end);
  }

  void Find(size_t first, size_t last, size_t node, size_t begin, size_t end) {
    if (first >= end || last < begin) return;
    nodes_found_ += nodes_[node].areas.empty() ? 0 : 1;
    for (Area* area : nodes_[node].areas) {
      if (std::exchange(area->seen_by, calls_) != calls_) found_.push_back(area);
    }
    if (!nodes_[node].any_below) return;
    size_t middle = begin + (end - begin) / 2;
    Find(first, last, 2 * node, begin, middle);
    Find(first, last, 2 * node + 1, middle, end);
  }

  static bool Before(const Area* a, const Area* b) {
    return std::pair(a->offset, a->offset + a->bytes) < std::pair(b->offset, b->offset + b->bytes);
  }

  std::vector<int> steps_;  // at which something begins or ends, ascending
  size_t leaves_ = 1;
  std::vector<Node> nodes_;  // children of i: 2 i and 2 i + 1
  int64_t calls_ = 0;
  std::vector<const Area*> found_;  // by the last call
  int nodes_found_ = 0;             // they come from; of one node they are in order
};

}  // namespace

MemoryPlan PlanMemory(const std::vector<MemoryBlock>& blocks, int64_t alignment) {
  // A chain of blocks that reuse each other's memory is one area.
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
  Timeline placed(areas);
  for (size_t i : order) {
    Area& area = areas[i];
    int64_t at = 0;
    for (const Area* other : placed.AliveWith(area)) {
      if (at + area.bytes <= other->offset) break;
      at = std::max(at, other->offset + other->bytes);
    }
    area.offset = at;
    plan.bytes = std::max(plan.bytes, at + area.bytes);
    placed.Add(&area);
  }
  for (int a : area_of) plan.offsets.push_back(areas[static_cast<size_t>(a)].offset);
  return plan;
}

}  // namespace fusion
