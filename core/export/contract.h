#pragma once

#include <vector>

namespace fusion {

/// Nodes and who reads from whom, without cycles.
struct NodeGraph {
  /// By node: those that read from it.
  std::vector<std::vector<int>> readers;
  /// Every node once, each behind those that it reads from.
  std::vector<int> order;
  /// By node: may become part of a set if it lies between two of its nodes.
  std::vector<bool> free;
};

/// Nodes that become one.
struct NodePart {
  int set = -1;            // position in `sets`; -1: a single node of none
  std::vector<int> nodes;  // in the order of the graph
};

/// Makes each of `sets`, which share no node, into one node, as far as the graph stays without
/// cycles; in the order of the result, each part is behind those that it reads from.
///
///   a -> b -> c, sets {{a, c}}                     ->  {a, b, c} if b is free, else {a} {b} {c}
///   a -> b, c -> d, sets {{a, d}, {b, c}}          ->  {c} {a, d} {b}
///
/// A set is one part with the free nodes between its own. Where nodes that are not free lie
/// between, or earlier sets would read from it and it from them, it is several parts, greedily as
/// long as possible. Pure. O(n) for a set whose nodes are near each other in `order`.
std::vector<NodePart> Contract(const NodeGraph& graph, const std::vector<std::vector<int>>& sets);

}  // namespace fusion
