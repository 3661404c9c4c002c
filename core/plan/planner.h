#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/base/threads/job.h"
#include "core/bundle/tile_search.h"
#include "core/device/device_spec.h"
#include "core/graph/graph.h"
#include "core/plan/rules/registered.h"
#include "core/plan/rules/rule_effects.h"
#include "core/plan/sets/planned_model.h"
#include "core/rewrite/program_passes.h"

namespace fusion {

/// Kernels that the operator of a server wrote.
struct RegisteredOptions {
  RegisteredKernels kernels;
  /// By name: those of them that are not to run, and why. Their places are Plan::fallbacks.
  std::map<std::string, std::string> unused;
};

/// How a plan with these options takes a graph apart.
ProgramOptions ProgramOptionsFor(const PlanOptions& options);

/// Plans a canonical graph of static shapes for a device: which loop ops run as one kernel
/// (ChoosePlan), how each kernel is cut, and where every tensor lies. A merge that would make the
/// group graph cyclic, that has no schedule or gains nothing is refused with its reason. Nodes in
/// `unfused_nodes` fuse with nothing: a kernel that held them has failed, for the reason given,
/// which goes into Plan::fallbacks. Fused plans follow options.rules; one kernel a node is the
/// baseline and follows none. With PlanOptions::lock the groups and cuts are the lock's, whatever
/// is better and whatever rules and `unfused_nodes` say; InvalidArgument, naming the field, if they
/// do not fit the graph. Fused plans without a lock may run `registered` kernels where these fit; a
/// place where one does not is a note. A repeat is a loop over the plan of its body. Rules and
/// registered kernels hold in bodies as in the graph, in each by itself; not in the steps of a
/// recurrence, whose nodes no model has. In fallbacks and messages the nodes of a body are the one
/// that repeats it.
///
/// `search` (may be null) is what was measured for the plan of all else: its groups are the same,
/// cut as `search` says, which becomes Plan::search; what has another group by now is cut as ever.
/// A cut that does not fit is left out, and its kernel says why.
///
/// `passes` rewrite the program and the bodies of its loops first. One after which the program or
/// the plan would be wrong is left out, and stands in Plan::skipped_passes: the plan is right
/// without it, and may be slower. To find out which one it is, plans are made without one of them
/// at a time.
///
/// Pure and deterministic; any thread. Unimplemented names the node that no kernel can run,
/// FailedPrecondition the nodes that a rule forces into no kernel there is; ResourceExhausted names
/// a rule that fits too many places. The positions of the nodes, in the order in which `node ""`
/// stands in the message, are also the payload kFailedNode of the status, in decimal with spaces
/// between, because a canonical graph has no names. Where rules are to blame their positions in
/// `options.rules` are the payload kFailedRules, written alike.
absl::StatusOr<PlannedModel> MakePlan(const Graph& graph, const DeviceSpec& device,
                                      const PlanOptions& options,
                                      const CancelToken* cancel = nullptr,
                                      const std::map<NodeId, std::string>& unfused_nodes = {},
                                      const RegisteredOptions& registered = {},
                                      const TileSearch* search = nullptr,
                                      const std::vector<ProgramPass>& passes = ProgramPasses());

/// The kernels and tensors of a member of the family of plans that options.lock is of: its groups
/// and cuts for a graph that differs in dims alone. No ledger and no baseline. Otherwise as
/// MakePlan.
absl::StatusOr<PlannedModel> MakeMember(const Graph& graph, const DeviceSpec& device,
                                        const PlanOptions& options,
                                        const CancelToken* cancel = nullptr);

/// Raised whenever an equal request would get another plan; part of every plan key.
inline constexpr int kPlannerVersion = 46;

}  // namespace fusion
