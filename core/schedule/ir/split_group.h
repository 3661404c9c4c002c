#pragma once

#include "core/schedule/ir/group.h"
#include "core/smg/split.h"

namespace fusion {

/// A group in two phases (split-K): `partial` reduces each part of a dim, `merge` combines the
/// partial results. Values keep their ids. The partial results between the two have ids above all
/// others, and are dense and row-major.
struct SplitGroups {
  FusionGroup partial;
  FusionGroup merge;
};

/// SplitAlong (core/smg/split.h) for a group: `dim` is split into `parts` equal parts.
/// FailedPrecondition, with the text of its refusal, if the dim cannot be split.
absl::StatusOr<SplitGroups> SplitGroup(const FusionGroup& group, DimId dim, int64_t parts);

}  // namespace fusion
