#pragma once

#include <string>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// The graph that rules and registered kernels are matched against, for one program: the request's
/// graph, or the nodes of a loop body (BodyGraph). Body nodes have no positions in the request's
/// graph; messages name the node that repeats the body instead. The graphs must outlive it.
struct SeenGraph {
  const Graph& graph;    // patterns are matched against this
  const Graph& request;  // positions refer to this; equal to `graph` if `repeats` is kNoNode
  // The node of `request` that repeats the body, possibly through nested loops.
  NodeId repeats = kNoNode;

  bool of_body() const { return repeats != kNoNode; }
  /// The node of `graph` that a loop op comes from; kNoNode: none.
  NodeId NodeOf(const LoopOp& op) const { return of_body() ? op.step - 1 : op.origin; }
  /// Nodes of `graph` that the ops come from; ascending, each once.
  std::vector<NodeId> NodesOf(const Program& program, const std::vector<LoopId>& loops) const;
  /// By node of `graph`: its loop ops, ascending; empty for views. If a node has ops that runs
  /// execute, its ops on weights alone (prepared before the first run) are left out: they are in no
  /// kernel of a run, even if a pattern names the node.
  std::vector<std::vector<LoopId>> LoopsOfNodes(const Program& program) const;
  /// By node of `graph`: positions in `by_node` of the sets that hold its LoopsOfNodes. Each set of
  /// `by_node` must be of one node, and either prepared or not.
  std::vector<std::vector<int>> PartsOfNodes(const Program& program,
                                             const std::vector<std::vector<LoopId>>& by_node) const;
  /// The position in the request's graph that stands for a node of `graph`.
  int PositionOf(NodeId node) const { return of_body() ? repeats : node; }
};

}  // namespace fusion
