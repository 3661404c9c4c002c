#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/bundle/options.h"
#include "core/bundle/plan.h"
#include "core/rewrite/low_precision.h"

namespace fusion {

/// A rewrite of a program before groups and schedules are chosen. It gives a program that computes
/// the same, as far as its numerics allow.
struct ProgramPass {
  std::string name;  // for people, and a label of a metric
  /// Whether plans with these numerics may have it.
  std::function<bool(Numerics)> allowed;
  /// True if the program is another one than before.
  std::function<bool(const DeviceSpec&, Numerics, const LeaveProduct&, Program*)> run;
  /// Its ops may be those of several nodes: not where every node has a kernel of its own.
  bool joins_nodes = false;
};

/// The passes of the planner, in the order in which they run. Bodies of loops are programs of their
/// own and get the same passes.
const std::vector<ProgramPass>& ProgramPasses();

/// Rewrites `program` with those of `passes` that `numerics` allows and `without` does not name. A
/// pass after which Verify(program) fails is returned with the reason, and all begins anew without
/// it, on what `again` gives: the program as it was.
absl::StatusOr<std::vector<SkippedPass>> RunPasses(
    const std::vector<ProgramPass>& passes, const DeviceSpec& device, Numerics numerics,
    std::set<std::string> without, const LeaveProduct& leave,
    const std::function<absl::StatusOr<Program>()>& again, Program* program);

}  // namespace fusion
