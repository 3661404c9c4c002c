#pragma once

#include <vector>

#include "core/import/model/flatten.h"

namespace fusion {

/// The nodes that `wanted` depends on, each after the nodes that it reads, otherwise in model
/// order. O(n log n), not recursive.
///
/// InvalidArgument, naming nodes, if there is a cycle or a needed value has no definition.
absl::StatusOr<std::vector<int>> TopologicalOrder(const FlatModel& model,
                                                  const std::vector<ValueRef>& wanted);

}  // namespace fusion
