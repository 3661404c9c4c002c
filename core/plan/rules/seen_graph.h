#pragma once

#include <string>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// What rules and registered kernels see of a program: the graph it is of, or the nodes of the body
/// of one of its loops (BodyGraph). The latter have no positions in the graph of the request:
/// towards people they are the node that repeats them.
struct SeenGraph {
  const Graph& graph;        // what patterns are looked for in
  const Graph& request;      // what positions are of; the same where `repeats` is kNoNode
  NodeId repeats = kNoNode;  // the node of `request` whose body, or whose body's body, it is

  bool of_body() const { return repeats != kNoNode; }
  /// The node of `graph` that a loop op comes from; kNoNode: none.
  NodeId NodeOf(const LoopOp& op) const { return of_body() ? op.step - 1 : op.origin; }
  /// Ascending, each once.
  std::vector<NodeId> NodesOf(const Program& program, const std::vector<LoopId>& loops) const;
  /// By node of `graph` its loop ops, ascending; views have none. A node that runs compute counts
  /// without what they find prepared: what it makes from weights alone is no part of any kernel of
  /// a run, however a pattern asks for the node.
  std::vector<std::vector<LoopId>> LoopsOfNodes(const Program& program) const;
  /// By node of `graph` the sets that hold loop ops of LoopsOfNodes, as positions in `by_node`,
  /// each of which is of one node, and of what is prepared or of what is not.
  std::vector<std::vector<int>> PartsOfNodes(const Program& program,
                                             const std::vector<std::vector<LoopId>>& by_node) const;
  /// The position of a node of `graph`.
  int PositionOf(NodeId node) const { return of_body() ? repeats : node; }
};

}  // namespace fusion
