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

/// The registered kernels that a plan may use: kernels that the server's operator wrote.
struct RegisteredOptions {
  RegisteredKernels kernels;
  /// Kernels that must not run, by name, with the reason. Places where they match become
  /// Plan::fallbacks.
  std::map<std::string, std::string> unused;
};

/// How BuildProgram must decompose a graph for a plan with these options.
ProgramOptions ProgramOptionsFor(const PlanOptions& options);

/// Plans a canonical graph of static shapes for a device: which loop ops run as one kernel
/// (ChoosePlan), the tiling of each kernel, and the place of every tensor. A merge that would make
/// the group graph cyclic, has no schedule or gains nothing is refused with a reason.
///
/// `unfused_nodes`: node of `graph` -> why a kernel that held it failed. These nodes fuse with
/// nothing; the reasons go into Plan::fallbacks.
///
/// `registered` kernels may run in fused plans without a lock. A place where one does not fit gives
/// an entry of PlannedModel::notes.
///
/// `search` (may be null): measured tilings for the plan of all other arguments. The groups are the
/// same; those named in `search` get its tilings, others keep the estimated best. What was used
/// becomes Plan::search; a tiling that does not fit is dropped with a reason.
///
/// `passes` first rewrite the program and the bodies of its loops. A pass that makes the program or
/// the plan invalid is left out and reported in Plan::skipped_passes. To find it, the plan is made
/// again without one pass at a time.
///
/// Options: fused plans follow options.rules; op-by-op plans follow none. With PlanOptions::lock
/// groups and tilings are those of the lock, regardless of rules, `unfused_nodes` and estimates.
///
/// Loops: a repeat becomes a loop over the plan of its body. Rules and registered kernels apply to
/// each body separately, except to the steps of a recurrence, which are no nodes of the model. In
/// fallbacks and messages the node that repeats a body stands for the body's nodes.
///
/// Pure and deterministic; any thread. `cancel` may be null. Errors:
///
///   InvalidArgument     the lock does not fit the graph; names its field. Or a rule names an
///                       operator type that this build lacks
///   Unimplemented       no kernel can run a node; names the node
///   FailedPrecondition  a rule forces nodes into a kernel that cannot exist; names the nodes
///   ResourceExhausted   a rule matches in too many places, or arena or prepared weights exceed
///                       kMaxSpaceBytes
///   Internal            the plan is inconsistent, and leaving passes out does not help
///   of `cancel`         as the token says
///
/// The payload kFailedNode has the positions of the named nodes, in the order in which `node ""`
/// occurs in the message (a canonical graph has no names): decimal, separated by spaces. If rules
/// are the cause, the payload kFailedRules has their positions in `options.rules` in the same form.
absl::StatusOr<PlannedModel> MakePlan(const Graph& graph, const DeviceSpec& device,
                                      const PlanOptions& options,
                                      const CancelToken* cancel = nullptr,
                                      const std::map<NodeId, std::string>& unfused_nodes = {},
                                      const RegisteredOptions& registered = {},
                                      const TileSearch* search = nullptr,
                                      const std::vector<ProgramPass>& passes = ProgramPasses());

/// The kernels and tensors of one member of a family of plans: the groups and tilings of
/// options.lock (aborts without one), for a graph that differs only in dims. Has no ledger, no
/// baseline and no frontier, and is not verified: the caller verifies the family. Otherwise as
/// MakePlan.
absl::StatusOr<PlannedModel> MakeMember(const Graph& graph, const DeviceSpec& device,
                                        const PlanOptions& options,
                                        const CancelToken* cancel = nullptr);

/// Part of every plan key. Raise it whenever equal requests get another plan.
inline constexpr int kPlannerVersion = 46;

}  // namespace fusion
