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

/// A rewrite of a program before groups and schedules are chosen. The new program computes the
/// same, within what the numerics allow.
struct ProgramPass {
  std::string name;  // for people, and a label of a metric
  /// Whether plans with these numerics may run the pass.
  std::function<bool(Numerics)> allowed;
  /// Rewrites the program in place. True if it changed.
  std::function<bool(const DeviceSpec&, Numerics, const LeaveProduct&, Program*)> run;
  /// True if a resulting op may compute several nodes. Such a pass is not used where every node has
  /// a kernel of its own.
  bool joins_nodes = false;
};

/// The passes of the planner, in execution order. RunPasses does not rewrite bodies of loops: they
/// are programs of their own, to which the planner applies the same passes.
const std::vector<ProgramPass>& ProgramPasses();

/// Runs those of `passes` on `program` that `numerics` allows and `without` does not name. After a
/// pass that changed the program, Verify(program) runs. If it fails, the pass is added to the
/// result with the reason, `again` must return the original program, and all other passes run again
/// from the start.
///
/// `leave` as in LeaveProduct. Fails only as `again` does; `program` is then invalid.
absl::StatusOr<std::vector<SkippedPass>> RunPasses(
    const std::vector<ProgramPass>& passes, const DeviceSpec& device, Numerics numerics,
    std::set<std::string> without, const LeaveProduct& leave,
    const std::function<absl::StatusOr<Program>()>& again, Program* program);

}  // namespace fusion
