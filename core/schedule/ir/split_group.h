#pragma once

#include "core/schedule/ir/group.h"
#include "core/smg/split.h"

namespace fusion {

/// A group in two phases: partial results of the parts of a reduced dim, then their merge. Values
/// have the names of the original; those between the two are above them, dense and row-major.
struct SplitGroups {
  FusionGroup partial;
  FusionGroup merge;
};

/// As SplitAlong; FailedPrecondition with its refusal.
absl::StatusOr<SplitGroups> SplitGroup(const FusionGroup& group, DimId dim, int64_t parts);

}  // namespace fusion
