#pragma once

#include <utility>
#include <vector>

#include "core/schedule/schedule.h"

namespace fusion {

/// Schedules of one launch, and where their params went.
struct SideBySide {
  Schedule schedule;
  /// For each param the part and the param of the part that it is (of several equal ones the
  /// first).
  std::vector<std::pair<int, BufferId>> source;
};

/// Horizontal fusion: schedules whose results none of the others reads become segments of one
/// phase, so that their tasks fill the units together and start with one launch. `values[i]` names
/// what is behind each param of part i: inputs and weights of equal name and form are passed once.
/// FailedPrecondition with the reason where a part cannot stand beside others. Pure.
absl::StatusOr<SideBySide> PutSideBySide(const std::vector<const Schedule*>& parts,
                                         const std::vector<std::vector<int>>& values);

}  // namespace fusion
