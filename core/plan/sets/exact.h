#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/status.h"
#include "core/plan/sets/group_graph.h"

namespace fusion {

/// Parts to be partitioned into groups, with the cost of a group. A set of parts is a bit mask.
struct ExactProblem {
  /// How the parts depend on each other. At most 16 parts.
  GroupGraph::Paths paths;
  /// Cost of one group; infinity if the group cannot exist. Called at most once per set.
  std::function<absl::StatusOr<double>(uint32_t)> cost;
  /// A cheap lower bound of the cost of a group, and of every partition of it.
  std::function<double(uint32_t)> bound;
  /// Only partitions that cost less than this count.
  double below = 0;
};

struct ExactSolution {
  std::vector<uint32_t> groups;  // in execution order; empty: none costs less than `below`
  double cost = 0;
};

/// The partition of least total cost into groups that can run one after the other. It is the
/// shortest path through the sets of parts that are closed under dependence; each step adds a
/// group. Calls `cost` only where the bound does not decide. Fails only as `cost` does.
/// Deterministic.
absl::StatusOr<ExactSolution> SolveExactly(const ExactProblem& problem);

}  // namespace fusion
