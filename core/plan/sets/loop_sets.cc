#include "core/plan/sets/loop_sets.h"

#include <algorithm>

namespace fusion {

std::vector<LoopId> Union(const std::vector<LoopId>& a, const std::vector<LoopId>& b) {
  std::vector<LoopId> out(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), out.begin());
  return out;
}

std::vector<LoopId> UnionOf(const std::vector<std::vector<LoopId>>& sets) {
  std::vector<LoopId> out;
  for (const std::vector<LoopId>& set : sets) out.insert(out.end(), set.begin(), set.end());
  std::sort(out.begin(), out.end());
  return out;
}

bool HasRepeat(const Program& program, const std::vector<LoopId>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](LoopId l) { return program.op(l).kind == LoopOp::kRepeat; });
}

bool HasOpaque(const Program& program, const std::vector<LoopId>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](LoopId l) { return program.op(l).kind == LoopOp::kOpaque; });
}

std::vector<int> NodesOf(const Program& program, const std::vector<LoopId>& loops) {
  std::vector<int> nodes;
  nodes.reserve(loops.size());
  for (LoopId l : loops) {
    if (program.op(l).origin != kNoNode) nodes.push_back(program.op(l).origin);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

}  // namespace fusion
