#pragma once

#include <vector>

#include "core/import/model/flatten.h"

namespace fusion {

/// The nodes that give `wanted` or are needed for it, each after the nodes it reads, otherwise in
/// the order of the model. O(n log n); no recursion.
///
/// InvalidArgument, naming nodes, if some form a cycle, or a needed value has no definition.
absl::StatusOr<std::vector<int>> TopologicalOrder(const FlatModel& model,
                                                  const std::vector<ValueRef>& wanted);

}  // namespace fusion
