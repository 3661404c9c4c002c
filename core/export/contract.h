#pragma once

#include <vector>

namespace fusion {

/// An acyclic graph of nodes.
struct NodeGraph {
  /// By node: the nodes that read its results.
  std::vector<std::vector<int>> readers;
  /// A topological order: every node once, after the nodes that it reads.
  std::vector<int> order;
  /// By node: it may join a set if it is on a path between two nodes of the set.
  std::vector<bool> free;
};

/// Nodes that become one node.
struct NodePart {
  int set = -1;            // position in `sets`; -1: a single node of no set
  std::vector<int> nodes;  // in graph order
};

/// Contracts each of `sets` (disjoint) to one node, where the graph stays acyclic. In the result,
/// each part comes after those that it reads.
///
///   a -> b -> c, sets {{a, c}}                     ->  {a, b, c} if b is free, else {a} {b} {c}
///   a -> b, c -> d, sets {{a, d}, {b, c}}          ->  {c} {a, d} {b}
///
/// A set becomes one part, together with the free nodes between its own. It becomes several parts,
/// each greedily as long as possible, if nodes that are not free lie between, or if a cycle with an
/// earlier set would arise. Pure. O(n) for a set whose nodes are near each other in `order`.
std::vector<NodePart> Contract(const NodeGraph& graph, const std::vector<std::vector<int>>& sets);

}  // namespace fusion
