#include "core/plan/seen_graph.h"

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
  return out;
}

}  // namespace fusion
