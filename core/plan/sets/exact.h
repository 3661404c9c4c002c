#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/status.h"
#include "core/plan/sets/group_graph.h"

namespace fusion {

/// Parts to be put into groups, and what groups of them cost. Sets of parts are bit masks.
struct ExactProblem {
  /// How the parts depend on each other; at most 16.
  GroupGraph::Paths paths;
  /// Cost of one group; infinite if there is no such group.
  std::function<absl::StatusOr<double>(uint32_t)> cost;
  /// Cheap; never above the cost of a group, nor of the groups of any partition of it.
  std::function<double(uint32_t)> bound;
  /// A partition must cost less than this.
  double below = 0;
};

struct ExactSolution {
  std::vector<uint32_t> groups;  // in an order that respects data flow; empty: none is below
  double cost = 0;
};

/// The partition of least cost into groups that can run one after the other: the shortest way
/// through the sets of parts that hold all that their members read, each step a group. Asks for the
/// costs it cannot do without. Deterministic.
absl::StatusOr<ExactSolution> SolveExactly(const ExactProblem& problem);

}  // namespace fusion
