#pragma once

#include <map>
#include <utility>

#include "core/schedule/lower/product_roles.h"

namespace fusion {

/// The params of a kernel, by what they hold. Internal to lowering.
struct ParamTable {
  std::map<ValueId, BufferId> inputs;  // in the caller's layout
  std::map<ValueId, BufferId> outputs;
  std::map<std::pair<int, int>, BufferId> packed;  // by (op, read): constants packed in panels
};

/// Adds the params of a group to a schedule that has its dims and no buffers: inputs in the order
/// of the ops that read them, then outputs. FailedPrecondition if the choice splits packed columns
/// inside a panel.
absl::StatusOr<ParamTable> DeclareParams(const FusionGroup& group, const ProductRoles& roles,
                                         Lowered* lowered);

/// Permutes the dims of a packed param: those that are in `dims` appear in the order of `dims`, the
/// others keep their positions.
void ReorderPacked(BufferId packed, const std::vector<DimId>& dims, Lowered* lowered);

}  // namespace fusion
