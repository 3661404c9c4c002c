#pragma once

#include <map>
#include <utility>

#include "core/schedule/lower/product_roles.h"

namespace fusion {

/// The params of a kernel. Internal to lowering.
struct ParamTable {
  std::map<ValueId, BufferId> inputs;  // as the caller lays them out
  std::map<ValueId, BufferId> outputs;
  std::map<std::pair<int, int>, BufferId> packed;  // by op and read: constants in panels
};

/// Adds the params of a group to a schedule that has its dims and nothing else: what is read, in
/// the order of the ops, then the outputs. FailedPrecondition where the choice cuts packed columns
/// inside their panels.
absl::StatusOr<ParamTable> DeclareParams(const FusionGroup& group, const ProductRoles& roles,
                                         Lowered* lowered);

/// Lays a packed param out with those of its dims that `dims` has in the order of `dims`.
void ReorderPacked(BufferId packed, const std::vector<DimId>& dims, Lowered* lowered);

}  // namespace fusion
