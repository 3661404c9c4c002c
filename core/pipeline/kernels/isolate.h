#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "core/bundle/plan.h"
#include "core/graph/graph.h"

namespace fusion {

/// Nodes that fuse with nothing, and why.
using UnfusedNodes = std::map<NodeId, std::string>;

/// The nodes that a plan was told to leave alone.
UnfusedNodes UnfusedNodesOf(const Plan& plan);

/// The registered kernels that a plan was told not to run, and why.
std::map<std::string, std::string> UnusedOf(const Plan& plan);

/// Takes the failures of registered kernels out of `results` (as IsolateFailures has them), by
/// name: their groups can run generated code instead.
std::map<std::string, absl::Status> TakeRegisteredFailures(const Plan& plan,
                                                           std::vector<absl::Status>* results);

/// Adds the nodes of groups whose kernel is at fault to `unfused_nodes`, and kNoVariant where only
/// a variant runs it. `results`: how each kernel of `plan` fared. Fails if a kernel could not be
/// tried, or is the kernel of nothing that could be taken apart; then the status names kernel or
/// node.
absl::Status IsolateFailures(const Plan& plan, const std::vector<absl::Status>& results,
                             Logger& logger, UnfusedNodes* unfused_nodes);

/// For a plan that a lock pins, so that nothing may be taken apart: FailedPrecondition, naming the
/// kernel, if one is at fault; otherwise fails as above.
absl::Status CheckPinned(const Plan& plan, const std::vector<absl::Status>& results);

}  // namespace fusion
