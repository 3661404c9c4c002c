#include "core/plan/loop_sets.h"

#include <algorithm>
#include <set>

namespace fusion {

std::vector<LoopId> Union(const std::vector<LoopId>& a, const std::vector<LoopId>& b) {
  std::vector<LoopId> out;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::vector<LoopId> UnionOf(const std::vector<std::vector<LoopId>>& sets) {
  std::vector<LoopId> out;
  for (const std::vector<LoopId>& set : sets) out.insert(out.end(), set.begin(), set.end());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<int> NodesOf(const Program& program, const std::vector<LoopId>& loops) {
  std::set<int> nodes;
  for (LoopId l : loops) nodes.insert(program.op(l).origin);
  nodes.erase(kNoNode);
  return {nodes.begin(), nodes.end()};
}

}  // namespace fusion
