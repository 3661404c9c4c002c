#pragma once

#include <utility>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// The data flow between the groups of a plan. Immutable; any thread.
class GroupEdges {
 public:
  /// `groups`: in topological order. Empty groups have no edges.
  GroupEdges(const Program& program, const std::vector<std::vector<LoopId>>& groups);

  /// (writer, reader), ascending. A read through a reinterpretation counts as a read of its source.
  const std::vector<std::pair<int, int>>& edges() const { return edges_; }
  /// For each edge: groups on other paths from its writer to its reader, ascending; the first
  /// `most` that are found. Empty if the edge is the only path.
  std::vector<std::vector<int>> Between(size_t most) const;
  /// True if a path leads from group `from` to group `to`; `from` < `to`. Takes time linear in the
  /// groups and edges between the two.
  bool HasPath(int from, int to) const;

 private:
  std::vector<std::pair<int, int>> edges_;
  std::vector<std::vector<int>> readers_;
  std::vector<std::vector<int>> writers_;
  std::vector<int> depth_;  // edges of the longest path that ends at a group
};

}  // namespace fusion
