#include "core/plan/rules/seen_graph.h"

#include <algorithm>
#include <set>

namespace fusion {

std::vector<NodeId> SeenGraph::NodesOf(const Program& program,
                                       const std::vector<LoopId>& loops) const {
  std::set<NodeId> nodes;
  for (LoopId l : loops) nodes.insert(NodeOf(program.op(l)));
  nodes.erase(kNoNode);
  return {nodes.begin(), nodes.end()};
}

std::vector<std::vector<LoopId>> SeenGraph::LoopsOfNodes(const Program& program) const {
  std::vector<std::vector<LoopId>> out(graph.nodes().size());
  for (size_t l = 0; l < program.ops.size(); ++l) {
    const NodeId node = NodeOf(program.ops[l]);
    if (program.ops[l].IsAlias() || node == kNoNode) continue;
    out[static_cast<size_t>(node)].push_back(static_cast<LoopId>(l));
  }
  const std::vector<bool> known = KnownBeforeRuns(program);
  auto prepared = [&](LoopId l) { return known[static_cast<size_t>(program.op(l).output)]; };
  for (std::vector<LoopId>& loops : out) {
    if (!std::all_of(loops.begin(), loops.end(), prepared)) std::erase_if(loops, prepared);
  }
  return out;
}

std::vector<std::vector<int>> SeenGraph::PartsOfNodes(
    const Program& program, const std::vector<std::vector<LoopId>>& by_node) const {
  const std::vector<std::vector<LoopId>> loops = LoopsOfNodes(program);
  std::vector<std::vector<int>> out(loops.size());
  for (size_t p = 0; p < by_node.size(); ++p) {
    const NodeId node = NodeOf(program.op(by_node[p][0]));
    if (node == kNoNode) continue;
    const std::vector<LoopId>& own = loops[static_cast<size_t>(node)];
    if (!std::binary_search(own.begin(), own.end(), by_node[p][0])) continue;
    out[static_cast<size_t>(node)].push_back(static_cast<int>(p));
  }
  return out;
}

}  // namespace fusion
