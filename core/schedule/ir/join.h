#pragma once

#include <utility>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Several schedules joined to one launch.
struct JoinedSchedules {
  Schedule schedule;
  /// By param of `schedule`: the part (position in `parts`) that it comes from, and its number
  /// there. If several parts pass the same param, the first one.
  std::vector<std::pair<int, BufferId>> source;
};

/// Horizontal fusion: independent schedules become segments of one phase, so that their tasks share
/// the threads and start with one launch. No part may read a result of another one. `values[i][p]`
/// identifies the tensor behind param p of part i; inputs and weights with equal identifier and
/// layout are passed once. FailedPrecondition, with the reason, if a part has several phases or an
/// empty dim. Pure.
absl::StatusOr<JoinedSchedules> PutSideBySide(const std::vector<const Schedule*>& parts,
                                              const std::vector<std::vector<int>>& values);

/// The parts become consecutive phases of one launch. A part may read results of the parts before
/// it. `values` as in PutSideBySide; a result and its reads have the same identifier. Results whose
/// identifier is in `kept` (ascending) are output params; all others stay in workspace.
/// FailedPrecondition, with the reason, if a part has an empty dim, or if it reads a value under
/// another shape than it was written and one of the two is not dense. Pure.
absl::StatusOr<JoinedSchedules> PutInPhases(const std::vector<const Schedule*>& parts,
                                            const std::vector<std::vector<int>>& values,
                                            const std::vector<int>& kept);

}  // namespace fusion
