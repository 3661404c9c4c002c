#pragma once

#include <utility>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Which groups of a plan read from which. Immutable; any thread.
class GroupEdges {
 public:
  /// `groups` in an order in which every group comes after those it reads from; empty ones have no
  /// edges.
  GroupEdges(const Program& program, const std::vector<std::vector<LoopId>>& groups);

  /// (writer, reader), ascending; reinterpretations between the two do not count.
  const std::vector<std::pair<int, int>>& edges() const { return edges_; }
  /// By edge: groups that some path from the writer to the reader passes, the first `most` that are
  /// found, ascending; none if the edge is the only path.
  std::vector<std::vector<int>> Between(size_t most) const;
  /// True if some path leads from a group to one behind it. Takes as long as there are groups and
  /// edges between the two.
  bool HasPath(int from, int to) const;

 private:
  std::vector<std::pair<int, int>> edges_;
  std::vector<std::vector<int>> readers_;
  std::vector<std::vector<int>> writers_;
  std::vector<int> depth_;  // edges of the longest path that ends here
};

}  // namespace fusion
