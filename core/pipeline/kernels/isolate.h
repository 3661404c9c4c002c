#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "core/bundle/plan.h"
#include "core/graph/graph.h"

namespace fusion {

/// Nodes that fuse with nothing, with the reason. The key may also be kNoVariant: no variant for
/// few elements.
using UnfusedNodes = std::map<NodeId, std::string>;

/// The unfused nodes of a plan, from its fallbacks.
UnfusedNodes UnfusedNodesOf(const Plan& plan);

/// The registered kernels that were excluded from a plan, by name, with the reason.
std::map<std::string, std::string> UnusedOf(const Plan& plan);

/// Removes the failures of registered kernels from `results` (by plan kernel) and returns them by
/// name: their groups can run generated code instead.
std::map<std::string, absl::Status> TakeRegisteredFailures(const Plan& plan,
                                                           std::vector<absl::Status>* results);

/// Adds the nodes of groups with a failed kernel to `unfused_nodes`, and kNoVariant if only a
/// variant runs that kernel. `results`: status of each plan kernel. Errors: the status of a kernel
/// that could not be tried (not IsKernelsFault), with its name. If the group of a failed kernel
/// cannot be split: Unimplemented if the backend cannot generate the kernel, else Internal, with
/// the node (kFailedNode).
absl::Status IsolateFailures(const Plan& plan, const std::vector<absl::Status>& results,
                             Logger& logger, UnfusedNodes* unfused_nodes);

/// For a plan that a lock pins, whose groups must not be split: FailedPrecondition, naming the
/// kernel, if a kernel failed (IsKernelsFault); other errors are returned with the kernel's name.
absl::Status CheckPinned(const Plan& plan, const std::vector<absl::Status>& results);

}  // namespace fusion
