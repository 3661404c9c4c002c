#pragma once

#include <utility>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Schedules of one launch, and where their params went.
struct JoinedSchedules {
  Schedule schedule;
  /// For each param the part and the param of the part that it is (of several equal ones the
  /// first).
  std::vector<std::pair<int, BufferId>> source;
};

/// Horizontal fusion: schedules whose results none of the others reads become segments of one
/// phase, so that their tasks fill the units together and start with one launch. `values[i]` names
/// what is behind each param of part i: inputs and weights of equal name and form are passed once.
/// FailedPrecondition with the reason where a part cannot stand beside others. Pure.
absl::StatusOr<JoinedSchedules> PutSideBySide(const std::vector<const Schedule*>& parts,
                                              const std::vector<std::vector<int>>& values);

/// One launch of several phases: each part may read what those before it write, from workspace or,
/// if it is one of `kept` (ascending), from where it is written for the caller. Otherwise as
/// PutSideBySide; also FailedPrecondition where a part reads what another one writes under another
/// shape and one of the two is not dense.
absl::StatusOr<JoinedSchedules> PutInPhases(const std::vector<const Schedule*>& parts,
                                            const std::vector<std::vector<int>>& values,
                                            const std::vector<int>& kept);

}  // namespace fusion
